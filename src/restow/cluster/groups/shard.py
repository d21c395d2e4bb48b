"""The groups of one `__consumer_offsets` partition, loaded while this broker leads it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.mixed import MixedGroup
from restow.cluster.groups.consumer.records import (
    ConsumerGroupKey,
    RecordKind,
    StoredGroup,
    remove,
    replay,
)
from restow.cluster.groups.consumer.requests import HeartbeatRefused, HeartbeatReply
from restow.cluster.groups.consumer.running import RunningConsumerGroup
from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.group import ClassicGroup
from restow.cluster.groups.journal import JournalWriter
from restow.cluster.groups.migration import to_classic, to_consumer
from restow.cluster.groups.records import (
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
)
from restow.cluster.groups.running import RunningGroup
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.consumer.topics import TopicDirectory
    from restow.cluster.groups.journal import JournalRecord, RecordJournal
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)


class Shard:
    """Groups that are stored in the same partition."""

    def __init__(
        self,
        partition: int,
        *,
        clock: Clock,
        journal: RecordJournal,
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
        async for record in self._journal.read_all(self.partition):
            if self.is_closed:
                return
            try:
                written.replay(record)
            except InvalidGroupRecord as error:
                log.warning(
                    "skipped record %d of __consumer_offsets-%d: %s", record.offset, self.partition, error
                )
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
        return self._run_consumer(MixedGroup(group_id, self._config, self._topics))

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
        self.writer.write(empty.group.last_records(), _nobody_waits)
        return running

    async def upgrade(self, classic: RunningGroup, request: HeartbeatRequest) -> HeartbeatReply:
        """Let a classic group with members go on in the other protocol, unless the heartbeat is refused."""
        now_ms = self._clock.now_ms()
        try:
            group = to_consumer(classic.group, self._config, self._topics)
        except HeartbeatRefused as refused:
            return HeartbeatReply(error=refused.code, message=str(refused))
        group.resume(now_ms)
        records = [(encode_group_key(GroupKey(group.id)), None), *group.all_records()]
        reply = group.heartbeat(request, now_ms)
        if reply.error is not ErrorCode.NONE:
            return reply
        classic.stop(ErrorCode.REBALANCE_IN_PROGRESS)
        running = self._run_consumer(group)
        running.stored = classic.stored
        self.writer.write(records, running.written)
        return await running.settled(reply)

    def _downgrade(self, mixed: RunningConsumerGroup) -> asyncio.Future[ErrorCode]:
        """Let a group that has only classic members left go on as a classic one."""
        now_ms = self._clock.now_ms()
        group = to_classic(mixed.group, self._config, self._make_id, now_ms)
        running = self._run(group)
        running.stored = mixed.stored
        mixed.stop()
        value = group.as_value({member.id: member.assignment for member in group.roster})
        records = [
            *mixed.group.last_records(),
            (encode_group_key(GroupKey(group.id)), encode_group_value(value)),
        ]
        written = self.writer.write(records, _nobody_waits)
        running.resume()
        if mixed.group.rebalances_after_downgrade:
            running.apply(group.rebalance(now_ms))
        return written

    def _settle(self, written: _Written) -> None:
        """Restore the stored groups; one that has only offsets is an empty classic group."""
        now_ms = self._clock.now_ms()
        for group_id, value in written.classic.items():
            self._run(ClassicGroup.written(group_id, value, self._config, self._make_id, now_ms))
        for group_id, stored in written.consumer.items():
            if stored.epoch > 0:
                self._run_consumer(MixedGroup.written(group_id, stored, self._config, self._topics))
        for key, offset in written.offsets.items():
            running = self.groups.get(key.group) or self.create(key.group)
            running.offsets[TopicPartition(key.topic, key.partition)] = offset
        for producer_id, offsets in written.in_transactions.items():
            for key, offset in offsets.items():
                running = self.groups.get(key.group) or self.create(key.group)
                running.stored.note(TopicPartition(key.topic, key.partition), offset, producer_id)

    def _run(self, group: ClassicGroup) -> RunningGroup:
        running = RunningGroup(group, self._clock, self.writer)
        self.groups[group.id] = running
        return running

    def _run_consumer(self, group: MixedGroup) -> RunningConsumerGroup:
        running = RunningConsumerGroup(group, self._clock, self.writer, self._downgrade)
        self.groups[group.id] = running
        return running


class _Written:
    """What the records of a partition say: the last one of a key counts, and a tombstone removes it.

    A group is of the protocol whose record comes last, even if a tombstone of the other one was lost.
    """

    def __init__(self) -> None:
        self.offsets: dict[OffsetKey, OffsetValue] = {}
        self.in_transactions: dict[int, dict[OffsetKey, OffsetValue]] = {}
        """By producer id: offsets of open transactions."""
        self.classic: dict[str, GroupValue] = {}
        self.consumer: dict[str, StoredGroup] = {}

    def replay(self, record: JournalRecord) -> None:
        key, value = record.key, record.value
        if record.commits is not None and record.producer_id is not None:
            ended = self.in_transactions.pop(record.producer_id, {})
            self.offsets |= ended if record.commits else {}
            return
        if key is None:
            raise InvalidGroupRecord("it has no key")
        match decode_key(key):
            case OffsetKey() as whose:
                self._replay_offset(whose, value, record.producer_id)
            case GroupKey(group):
                if value is None:
                    self.classic.pop(group, None)
                else:
                    self.classic[group] = decode_group_value(value)
                    self.consumer.pop(group, None)
            case ConsumerGroupKey() as whose:
                self._replay_consumer(whose, value)

    def _replay_offset(self, key: OffsetKey, value: bytes | None, producer_id: int | None) -> None:
        """Replay an offset. One outside of transactions supersedes those of open transactions before it."""
        if producer_id is not None and value is not None:
            self.in_transactions.setdefault(producer_id, {})[key] = decode_offset_value(value)
            return
        for offsets in self.in_transactions.values():
            if value is not None:
                offsets.pop(key, None)
        if value is None:
            self.offsets.pop(key, None)
        else:
            self.offsets[key] = decode_offset_value(value)

    def _replay_consumer(self, key: ConsumerGroupKey, value: bytes | None) -> None:
        if value is not None:
            if key.kind is RecordKind.GROUP:
                self.classic.pop(key.group, None)
            replay(self.consumer.setdefault(key.group, StoredGroup()), key, value)
        elif key.kind is RecordKind.GROUP:
            self.consumer.pop(key.group, None)
        elif key.group in self.consumer:
            remove(self.consumer[key.group], key)


def _nobody_waits(error: ErrorCode) -> None:
    """Ignore the result: if a tombstone is lost, the records of the other protocol follow it and count."""
