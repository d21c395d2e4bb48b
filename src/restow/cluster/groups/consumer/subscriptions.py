"""What a group's members subscribe to: names, and the topics that regular expressions match now."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.patterns import InvalidPattern, Pattern
from restow.cluster.groups.consumer.records import ResolvedPattern
from restow.cluster.groups.consumer.requests import HeartbeatRefused
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.cluster.groups.consumer.journaling import GroupRecords
    from restow.cluster.groups.consumer.members import ConsumerGroupMember, Subscription
    from restow.cluster.groups.consumer.topics import TopicDirectory

_BETWEEN_REFRESHES_MS = 10_000
"""A known expression is matched with all topics at most this often, as in Kafka."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The subscriptions as of a version of the metadata."""

    changed: bool
    """Whether topics or their partitions differ from what the group knew."""
    metadata_hash: int
    version: int
    patterns: Mapping[str, ResolvedPattern]

    def topics_of(self, subscriptions: Iterable[Subscription]) -> frozenset[str]:
        """Return all topics that these subscriptions name or match."""
        topics: set[str] = set()
        for names, pattern in subscriptions:
            topics.update(names)
            if pattern is not None and pattern in self.patterns:
                topics |= self.patterns[pattern].topics
        return frozenset(topics)


class Subscriptions:
    """The subscriptions of one group."""

    def __init__(self, topics: TopicDirectory) -> None:
        self._topics = topics
        self._now = Refreshed(False, 0, -1, {})
        self._compiled: dict[str, Pattern] = {}

    def restore(self, metadata_hash: int, patterns: Mapping[str, ResolvedPattern]) -> None:
        """Take over what was written; the next heartbeat looks at the metadata again."""
        self._now = Refreshed(False, metadata_hash, -1, dict(patterns))

    def know_topics_of(self, subscriptions: Iterable[Subscription]) -> None:
        """Count the topics that they name as known, so that only later changes are news."""
        topics = frozenset(topic for names, _ in subscriptions for topic in names)
        self._now = Refreshed(False, self._fingerprint(topics), -1, {})

    def check(self, member: ConsumerGroupMember) -> None:
        """Refuse a regular expression that cannot be compiled."""
        if member.pattern is None or member.pattern in self._compiled:
            return
        try:
            self._compiled[member.pattern] = Pattern(member.pattern)
        except InvalidPattern as error:
            raise HeartbeatRefused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error

    @property
    def metadata_hash(self) -> int:
        return self._now.metadata_hash

    @property
    def patterns(self) -> Mapping[str, ResolvedPattern]:
        return self._now.patterns

    def topics_of(self, subscriptions: Iterable[Subscription]) -> frozenset[str]:
        return self._now.topics_of(subscriptions)

    def refresh(
        self, subscriptions: Collection[Subscription], now_ms: int, *, subscription_changed: bool
    ) -> Refreshed:
        """Return these subscriptions with today's topics. `adopt` makes them the group's."""
        version = self._topics.version
        if not subscription_changed and version == self._now.version:
            return Refreshed(False, self._now.metadata_hash, version, self._now.patterns)
        patterns: dict[str, ResolvedPattern] = {}
        for pattern in sorted({pattern for _, pattern in subscriptions if pattern is not None}):
            known = self._now.patterns.get(pattern)
            if known is None or (version != known.version and _is_due(known, now_ms)):
                known = self._resolve(pattern, version, now_ms)
            if known.version != version:
                version = self._now.version  # a later heartbeat looks again
            patterns[pattern] = known
        refreshed = Refreshed(False, 0, version, patterns)
        fingerprint = self._fingerprint(refreshed.topics_of(subscriptions))
        return Refreshed(fingerprint != self._now.metadata_hash, fingerprint, version, patterns)

    def adopt(self, refreshed: Refreshed, records: GroupRecords) -> None:
        """Take over a result of `refresh`, and note the changed expressions in the records."""
        before = self._now.patterns
        if refreshed.patterns is not before:
            for pattern, resolved in refreshed.patterns.items():
                if before.get(pattern) != resolved:
                    records.pattern(pattern, resolved)
            for pattern in before.keys() - refreshed.patterns.keys():
                records.pattern(pattern, None)
                self._compiled.pop(pattern, None)
        self._now = refreshed

    def _resolve(self, pattern: str, version: int, now_ms: int) -> ResolvedPattern:
        if pattern not in self._compiled:
            self._compiled[pattern] = Pattern(pattern)
        compiled = self._compiled[pattern]
        return ResolvedPattern(frozenset(filter(compiled.matches, self._topics.names())), version, now_ms)

    def _fingerprint(self, topics: frozenset[str]) -> int:
        """Return a number that changes with the ids and partition counts of existing topics; 0 for none."""
        known = [
            f"{topic} {self._topics.id_of(topic)} {count}"
            for topic in sorted(topics)
            if (count := self._topics.partition_count(topic))
        ]
        if not known:
            return 0
        return int.from_bytes(sha256("\n".join(known).encode()).digest()[:8], "big", signed=True)


def _is_due(resolved: ResolvedPattern, now_ms: int) -> bool:
    return now_ms - resolved.resolved_at_ms >= _BETWEEN_REFRESHES_MS
