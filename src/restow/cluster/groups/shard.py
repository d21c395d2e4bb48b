"""The groups of one `__consumer_offsets` partition, loaded while this broker leads it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.group import ConsumerProtocolGroup
from restow.cluster.groups.consumer.records import (
    ConsumerGroupKey,
    RecordKind,
    StoredGroup,
    remove,
    replay,
)
from restow.cluster.groups.consumer.running import RunningConsumerGroup
from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.group import ClassicGroup
from restow.cluster.groups.journal import JournalWriter
from restow.cluster.groups.records import (
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
)
from restow.cluster.groups.running import RunningGroup
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.consumer.topics import TopicDirectory
    from restow.cluster.groups.journal import OffsetsJournal
    from restow.runtime.clock import Clock
    from restow.wire.error_codes import ErrorCode

log = logging.getLogger(__name__)


class Shard:
    """Groups that are stored in the same partition."""

    def __init__(
        self,
        partition: int,
        *,
        clock: Clock,
        journal: OffsetsJournal,
        config: GroupConfig,
        make_id: Callable[[], str],
        topics: TopicDirectory,
    ) -> None:
        self.partition = partition
        self.groups: dict[str, RunningGroup | RunningConsumerGroup] = {}
        self.is_loading = True
        self.is_closed = False
        self.writer = JournalWriter(partition, journal)
        self._clock = clock
        self._journal = journal
        self._config = config
        self._make_id = make_id
        self._topics = topics

    async def load(self) -> None:
        """Read everything, then start to coordinate, unless the shard was closed meanwhile."""
        written = _Written()
        async for offset, key, value in self._journal.read_all(self.partition):
            if self.is_closed:
                return
            try:
                written.replay(key, value)
            except InvalidGroupRecord as error:
                log.warning("skipped record %d of __consumer_offsets-%d: %s", offset, self.partition, error)
        if self.is_closed:
            return
        self._settle(written)
        self.is_loading = False
        for running in self.groups.values():
            running.resume()

    def close(self) -> None:
        """Unload all groups."""
        self.is_closed = True
        self.writer.close()
        for running in self.groups.values():
            running.stop()
        self.groups.clear()

    def create(self, group_id: str) -> RunningGroup:
        """Create an empty group of the classic protocol."""
        return self._run(ClassicGroup(group_id, self._config, self._make_id, self._clock.now_ms()))

    def create_consumer(self, group_id: str) -> RunningConsumerGroup:
        """Create an empty group of the protocol `consumer`."""
        return self._run_consumer(ConsumerProtocolGroup(group_id, self._config, self._topics))

    def become_consumer(self, empty: RunningGroup) -> RunningConsumerGroup:
        """Let an empty classic group go on in the other protocol, with its offsets."""
        running = self.create_consumer(empty.group.id)
        running.stored = empty.stored
        if empty.group.generation > 0:
            self.writer.write([(encode_group_key(GroupKey(empty.group.id)), None)], _nobody_waits)
        empty.stop()
        return running

    def become_classic(self, empty: RunningConsumerGroup) -> RunningGroup:
        """Let an empty group of the protocol `consumer` go on in the classic one, with its offsets."""
        running = self.create(empty.group.id)
        running.stored = empty.stored
        empty.stop()
        self.writer.write(empty.tombstones(), _nobody_waits)
        return running

    def _settle(self, written: _Written) -> None:
        """Restore the stored groups; one that has only offsets is an empty classic group."""
        now_ms = self._clock.now_ms()
        for group_id, value in written.classic.items():
            self._run(ClassicGroup.written(group_id, value, self._config, self._make_id, now_ms))
        for group_id, stored in written.consumer.items():
            if stored.epoch > 0:
                self._run_consumer(
                    ConsumerProtocolGroup.written(group_id, stored, self._config, self._topics)
                )
        for key, offset in written.offsets.items():
            running = self.groups.get(key.group) or self.create(key.group)
            running.offsets[TopicPartition(key.topic, key.partition)] = offset

    def _run(self, group: ClassicGroup) -> RunningGroup:
        running = RunningGroup(group, self._clock, self.writer)
        self.groups[group.id] = running
        return running

    def _run_consumer(self, group: ConsumerProtocolGroup) -> RunningConsumerGroup:
        running = RunningConsumerGroup(group, self._clock, self.writer)
        self.groups[group.id] = running
        return running


class _Written:
    """What the records of a partition say: the last one of a key counts, and a tombstone removes it."""

    def __init__(self) -> None:
        self.offsets: dict[OffsetKey, OffsetValue] = {}
        self.classic: dict[str, GroupValue] = {}
        self.consumer: dict[str, StoredGroup] = {}

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            raise InvalidGroupRecord("it has no key")
        match decode_key(key):
            case OffsetKey() as whose:
                if value is None:
                    self.offsets.pop(whose, None)
                else:
                    self.offsets[whose] = decode_offset_value(value)
            case GroupKey(group):
                if value is None:
                    self.classic.pop(group, None)
                else:
                    self.classic[group] = decode_group_value(value)
            case ConsumerGroupKey() as whose:
                self._replay_consumer(whose, value)

    def _replay_consumer(self, key: ConsumerGroupKey, value: bytes | None) -> None:
        if value is not None:
            replay(self.consumer.setdefault(key.group, StoredGroup()), key, value)
        elif key.kind is RecordKind.GROUP:
            self.consumer.pop(key.group, None)
        elif key.group in self.consumer:
            remove(self.consumer[key.group], key)


def _nobody_waits(error: ErrorCode) -> None:
    """Ignore the result: if a tombstone is lost, the records of the other protocol follow it and count."""
