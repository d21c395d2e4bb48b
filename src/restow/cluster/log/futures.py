"""Logs that move to another log dir: a copy grows beside the current log and then replaces it.

    d0/t-0              present   ──────────────────────────►   d0/t-0.<number>-delete      removed later
    d1/t-0.<number>-future   copied, catches up   ───────────►   d1/t-0                     present

The copy is renamed first. After a crash between the two renames, the broker finds two current logs with the
same records, and keeps one; after an earlier crash it finds the copy and continues it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.log.errors import DiskFailure, UnknownLog
from restow.cluster.log.future_copy import align

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.cluster.log.directory import LogDirectory
    from restow.cluster.log.log import PartitionLog
    from restow.model import TopicPartition


class MoveStep(Enum):
    """The step just done when a broker may crash, in this order."""

    L1 = "the copy's directory made, still empty"
    L2 = "a part copied"
    L3 = "the copy has caught up"
    L4 = "the copy renamed; both logs have the current log's name"
    L5 = "the old log renamed for removal"
    L6 = "the checkpoints of both log dirs written"


MoveHook: TypeAlias = "Callable[[MoveStep], None]"
"""Called at each step. Tests stop a broker there by raising."""


def go_on(_: MoveStep) -> None:
    """Do not stop."""


class FutureLogs:
    """The copies of one broker, at most one per partition."""

    def __init__(self, directories: Sequence[LogDirectory], home: dict[TopicPartition, LogDirectory]) -> None:
        """`home` maps partitions to their log dirs, and is updated when one has moved."""
        self._directories = directories
        self._home = home
        self.step: MoveHook = go_on

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that are being copied."""
        return tuple(partition for directory in self._directories for partition in directory.futures)

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Return the log dir of a copy."""
        return next((each for each in self._directories if partition in each.futures), None)

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the copy, if there is one."""
        directory = self.directory_of(partition)
        return None if directory is None else directory.futures[partition]

    def begin(self, partition: TopicPartition, target: LogDirectory) -> PartitionLog:
        """Start an empty copy of a log that is in another log dir."""
        home = self._home[partition]
        present = home.logs[partition]
        future = target.create_future(partition, present.config, home.topic_ids.get(partition))
        if partition in home.first_dirty:
            # The compacted part of the copy, whatever is compacted in the log meanwhile.
            target.first_dirty[partition] = home.first_dirty[partition]
        self.step(MoveStep.L1)
        return future

    def drop_strangers(self) -> None:
        """Drop copies with another topic id than the log: the topic was deleted and created again."""
        for partition in self.partitions:
            target, home = self.directory_of(partition), self._home.get(partition)
            if target is not None and home is not None:
                ids = {each.topic_ids[partition] for each in (target, home) if partition in each.topic_ids}
                if len(ids) > 1:
                    self.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        """Drop a copy, if there is one."""
        directory = self.directory_of(partition)
        if directory is not None:
            directory.doom(partition, future=True)

    def swap(self, partition: TopicPartition) -> PartitionLog:
        """Make the copy the current log, and delete the old one."""
        target, home = self.directory_of(partition), self._home.get(partition)
        if target is None or home is None:
            raise UnknownLog(f"there is no log of {partition} with a future log to replace it")
        present, future = home.logs[partition], target.futures[partition]
        align(present, future)
        future.adopt(present)
        future.high_watermark = present.high_watermark
        self.step(MoveStep.L3)
        log = target.promote(partition)
        self._home[partition] = target
        self.step(MoveStep.L4)
        try:
            home.doom(partition)
            self.step(MoveStep.L5)
            home.checkpoint()
        except DiskFailure:
            pass  # The old log dir has failed. Its remains are found when it is back.
        target.checkpoint()
        self.step(MoveStep.L6)
        return log


def newer(one: PartitionLog, other: PartitionLog) -> PartitionLog:
    """Return the one of two logs to keep: the longer one of the last leader."""
    return max(one, other, key=lambda log: (log.epochs.latest, log.end_offset))
