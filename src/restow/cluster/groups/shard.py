"""The groups of one `__consumer_offsets` partition, loaded while this broker leads it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

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
)
from restow.cluster.groups.running import RunningGroup
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.journal import OffsetsJournal
    from restow.runtime.clock import Clock

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
    ) -> None:
        self.partition = partition
        self.groups: dict[str, RunningGroup] = {}
        self.is_loading = True
        self.is_closed = False
        self.writer = JournalWriter(partition, journal)
        self._clock = clock
        self._journal = journal
        self._config = config
        self._make_id = make_id

    async def load(self) -> None:
        """Read everything, then start to coordinate, unless the shard was closed meanwhile."""
        written: dict[OffsetKey | GroupKey, OffsetValue | GroupValue] = {}
        async for offset, key, value in self._journal.read_all(self.partition):
            if self.is_closed:
                return
            try:
                _replay(written, key, value)
            except InvalidGroupRecord as error:
                log.warning("skipped record %d of __consumer_offsets-%d: %s", offset, self.partition, error)
        if self.is_closed:
            return
        self._settle(written)
        self.is_loading = False
        for running in self.groups.values():
            running.apply(running.group.resume(self._clock.now_ms()))

    def close(self) -> None:
        """Unload all groups."""
        self.is_closed = True
        self.writer.close()
        for running in self.groups.values():
            running.stop()
        self.groups.clear()

    def create(self, group_id: str) -> RunningGroup:
        """Create an empty group with that name."""
        return self._run(ClassicGroup(group_id, self._config, self._make_id, self._clock.now_ms()))

    def _settle(self, written: dict[OffsetKey | GroupKey, OffsetValue | GroupValue]) -> None:
        """Restore the stored groups; one that has only offsets is an empty group."""
        now_ms = self._clock.now_ms()
        for key, value in written.items():
            if isinstance(value, GroupValue):
                self._run(ClassicGroup.written(key.group, value, self._config, self._make_id, now_ms))
        for key, value in written.items():
            if isinstance(key, OffsetKey) and isinstance(value, OffsetValue):
                running = self.groups.get(key.group) or self.create(key.group)
                running.offsets[TopicPartition(key.topic, key.partition)] = value

    def _run(self, group: ClassicGroup) -> RunningGroup:
        running = RunningGroup(group, self._clock, self.writer)
        self.groups[group.id] = running
        return running


def _replay(
    written: dict[OffsetKey | GroupKey, OffsetValue | GroupValue], key: bytes | None, value: bytes | None
) -> None:
    """Apply a record: the last one of a key counts; a tombstone removes it."""
    if key is None:
        raise InvalidGroupRecord("it has no key")
    whose = decode_key(key)
    if whose is None:
        return
    if value is None:
        written.pop(whose, None)
    else:
        written[whose] = (
            decode_offset_value(value) if isinstance(whose, OffsetKey) else decode_group_value(value)
        )
