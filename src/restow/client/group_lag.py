"""How far consumer groups are behind, in messages and in time.

In messages: the end of the partition's log less the committed offset. In time: the age of the record that the
group has to read next. Brokers tell offsets by timestamps, not timestamps by offsets; so the age is searched
for: one, two, four seconds back, and so on, until the offset at that time is not after the committed one, and
then between the last two. One request per broker and step serves all partitions of all groups.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client.errors import BrokerError
from restow.client.values import ConsumerGroup, OffsetRange
from restow.errors import RestowError
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from restow.client.kafka_admin import KafkaAdmin
    from restow.client.values import GroupMember
    from restow.model import BrokerId, Topic

_FIRST_AGE_MS = 1_000
_HALVINGS = 6
"""Each halves what is unknown: the age is right to about 1 %."""
_OLDEST_MS = 50 * 365 * 24 * 60 * 60 * 1000
"""Records without a timestamp seem older than that; nothing is said of their age."""


class UnknownGroup(RestowError):
    """No broker coordinates a group of that name."""


@frozen
class PartitionLag:
    """How far a group is behind in one partition. What is unknown is None."""

    partition: TopicPartition
    committed: int | None
    latest: int | None
    earliest: int | None = None
    lag_ms: int | None = None
    member: GroupMember | None = None

    @property
    def lag(self) -> int | None:
        """In messages, as Kafka's own tool counts them."""
        return None if self.committed is None or self.latest is None else self.latest - self.committed

    @property
    def next_offset(self) -> int | None:
        """The record that the group reads next: records before the start of the log are gone."""
        return None if self.committed is None else max(self.committed, self.earliest or 0)


@frozen
class GroupLag:
    """A group, its coordinator, and the partitions that its members hold or that have a committed offset."""

    group: ConsumerGroup
    coordinator: BrokerId
    partitions: tuple[PartitionLag, ...] = ()
    error: str | None = None
    """Why its offsets are unknown."""

    @property
    def lag(self) -> int | None:
        """The messages of all partitions together that are known."""
        known = [each.lag for each in self.partitions if each.lag is not None]
        return sum(known) if known else None

    @property
    def lag_ms(self) -> int | None:
        """The age of the oldest record that is still to be read."""
        return max((each.lag_ms for each in self.partitions if each.lag_ms is not None), default=None)


async def group_lags(
    admin: KafkaAdmin, now_ms: int, names: Collection[str] | None = None, *, in_time: bool = True
) -> tuple[GroupLag, ...]:
    """Return all groups of a cluster, or these, by name. A name that no broker knows raises UnknownGroup."""
    view = await admin.describe_cluster()
    found = [
        each
        for some in await asyncio.gather(*(_coordinated(admin, node.id, names) for node in view.nodes))
        for each in some
    ]
    if lacking := sorted(set(names or ()) - {each.group.name for each in found}):
        raise UnknownGroup(
            f"no broker coordinates a consumer group called {', '.join(map(repr, lacking))}; "
            "`restow groups list` shows those that there are"
        )
    topics = await admin.describe_topics() if any(each.partitions for each in found) else ()
    leaders = _leaders(topics)
    found = await _with_ends(admin, found, leaders)
    if in_time:
        found = await _with_ages(admin, found, leaders, now_ms)
    return tuple(sorted(found, key=lambda each: each.group.name))


async def _coordinated(admin: KafkaAdmin, broker: BrokerId, names: Collection[str] | None) -> list[GroupLag]:
    groups = await admin.describe_consumer_groups(broker, names)
    committed = await admin.list_consumer_group_offsets(broker, groups)
    found = []
    for name, group in groups.items():
        if isinstance(group, BrokerError):
            unknown = ConsumerGroup(name=name, state="Unknown")
            found.append(GroupLag(group=unknown, coordinator=broker, error=str(group)))
            continue
        offsets = committed.get(name, {})
        error = str(offsets) if isinstance(offsets, BrokerError) else None
        known = {} if isinstance(offsets, BrokerError) else offsets
        holder = {partition: member for member in group.members for partition in member.held}
        partitions = tuple(
            PartitionLag(partition=each, committed=known.get(each), latest=None, member=holder.get(each))
            for each in sorted({*holder, *known})
        )
        found.append(GroupLag(group=group, coordinator=broker, partitions=partitions, error=error))
    return found


def _leaders(topics: Collection[Topic]) -> dict[TopicPartition, BrokerId]:
    return {
        TopicPartition(topic.name, each.number): each.leader
        for topic in topics
        for each in topic.partitions
        if each.leader is not None
    }


async def _with_ends(
    admin: KafkaAdmin, groups: list[GroupLag], leaders: Mapping[TopicPartition, BrokerId]
) -> list[GroupLag]:
    wanted: dict[BrokerId, set[TopicPartition]] = defaultdict(set)
    for group in groups:
        for each in group.partitions:
            if (leader := leaders.get(each.partition)) is not None:
                wanted[leader].add(each.partition)
    answers = await asyncio.gather(
        *(admin.list_offsets(broker, sorted(some)) for broker, some in wanted.items())
    )
    ends = {
        partition: found
        for answer in answers
        for partition, found in answer.items()
        if isinstance(found, OffsetRange)
    }

    def told(each: PartitionLag) -> PartitionLag:
        end = ends.get(each.partition)
        return each if end is None else replace(each, latest=end.latest, earliest=end.earliest)

    return [replace(group, partitions=tuple(map(told, group.partitions))) for group in groups]


async def _with_ages(
    admin: KafkaAdmin,
    groups: list[GroupLag],
    leaders: Mapping[TopicPartition, BrokerId],
    now_ms: int,
) -> list[GroupLag]:
    positions = {
        (each.partition, each.next_offset)
        for group in groups
        for each in group.partitions
        if each.next_offset is not None and (each.lag or 0) > 0 and each.partition in leaders
    }
    ages = await _ages(admin, positions, leaders, now_ms)

    def told(each: PartitionLag) -> PartitionLag:
        if each.lag is not None and each.lag <= 0:
            return replace(each, lag_ms=0)
        return replace(each, lag_ms=ages.get((each.partition, each.next_offset or 0)))

    return [replace(group, partitions=tuple(map(told, group.partitions))) for group in groups]


async def _ages(
    admin: KafkaAdmin,
    positions: Collection[tuple[TopicPartition, int]],
    leaders: Mapping[TopicPartition, BrokerId],
    now_ms: int,
) -> dict[tuple[TopicPartition, int], int]:
    """Return how old the record at each position is."""
    younger = dict.fromkeys(positions, 0)  # the record is older than this
    older: dict[tuple[TopicPartition, int], int] = {}  # and at most this old
    searching, age_ms = set(positions), _FIRST_AGE_MS
    while searching and age_ms <= _OLDEST_MS:
        reached = await _reached(admin, dict.fromkeys(searching, age_ms), leaders, now_ms)
        older |= dict.fromkeys((each for each in searching if reached.get(each)), age_ms)
        younger |= dict.fromkeys((each for each in searching if reached.get(each) is False), age_ms)
        searching = {each for each in searching if reached.get(each) is False}
        age_ms *= 2
    for _ in range(_HALVINGS):
        middle = {each: (younger[each] + older[each]) // 2 for each in older}
        reached = await _reached(admin, middle, leaders, now_ms)
        for each, age in middle.items():
            (older if reached.get(each, True) else younger)[each] = age
    return {each: (younger[each] + age) // 2 for each, age in older.items()}


async def _reached(
    admin: KafkaAdmin,
    ages_ms: Mapping[tuple[TopicPartition, int], int],
    leaders: Mapping[TopicPartition, BrokerId],
    now_ms: int,
) -> dict[tuple[TopicPartition, int], bool]:
    """Return whether the record at each position is at most that old; without the positions nobody leads.

    Groups may be at several positions of a partition, which a request may name once: so there are rounds.
    """
    asked: dict[tuple[BrokerId, int], dict[TopicPartition, int]] = defaultdict(dict)
    request_of: dict[tuple[TopicPartition, int], tuple[BrokerId, int]] = {}
    turns: Counter[TopicPartition] = Counter()
    for position, age in ages_ms.items():
        partition = position[0]
        request_of[position] = leaders[partition], turns[partition]
        turns[partition] += 1
        asked[request_of[position]][partition] = now_ms - age
    answers = await asyncio.gather(
        *(admin.offsets_for_times(broker, moments) for (broker, _), moments in asked.items())
    )
    answer_to = dict(zip(asked, answers, strict=True))
    found: dict[tuple[TopicPartition, int], bool] = {}
    for (partition, offset), request in request_of.items():
        if partition in answer_to[request]:
            first = answer_to[request][partition]
            found[partition, offset] = first is not None and first <= offset
    return found
