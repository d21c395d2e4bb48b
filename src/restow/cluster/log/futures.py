"""Logs on their way to another log dir: a copy grows beside the present log and then takes its place.

    d0/t-0              present   ──────────────────────────►   d0/t-0.<number>-delete      removed later
    d1/t-0.<number>-future   copied, catches up   ───────────►   d1/t-0                     present

The copy gets its name first. Who dies between the two renames finds two present logs that have the same
records, and keeps one; who dies before finds the copy, and goes on with it.
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
    """What has just been done when a broker may die. They come in this order."""

    L1 = "the copy's directory made, and nothing in it"
    L2 = "a part copied"
    L3 = "the copy has caught up"
    L4 = "the copy has the present log's name, which the present log has too"
    L5 = "the old log has a name that says it is to be removed"
    L6 = "both log dirs have written down which logs they have"


MoveHook: TypeAlias = "Callable[[MoveStep], None]"
"""Called at each step. Tests stop a broker there by raising; normally nobody does."""


def go_on(_: MoveStep) -> None:
    """Stop nowhere."""


class FutureLogs:
    """The copies of one broker, at most one of each partition."""

    def __init__(self, directories: Sequence[LogDirectory], home: dict[TopicPartition, LogDirectory]) -> None:
        """`home` says where present logs are, and is told when one has moved."""
        self._directories = directories
        self._home = home
        self.step: MoveHook = go_on

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Whose logs are being copied."""
        return tuple(partition for directory in self._directories for partition in directory.futures)

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """The log dir that a copy is made in."""
        return next((each for each in self._directories if partition in each.futures), None)

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """The copy, if one is being made."""
        directory = self.directory_of(partition)
        return None if directory is None else directory.futures[partition]

    def begin(self, partition: TopicPartition, target: LogDirectory) -> PartitionLog:
        """Begin an empty copy of a log that is in another log dir."""
        home = self._home[partition]
        present = home.logs[partition]
        future = target.create_future(partition, present.config, home.topic_ids.get(partition))
        if partition in home.first_dirty:
            # Of what is copied, this much has been compacted, whatever is compacted meanwhile.
            target.first_dirty[partition] = home.first_dirty[partition]
        self.step(MoveStep.L1)
        return future

    def drop_strangers(self) -> None:
        """Drop copies of what has another topic's id than the log: the topic was deleted and made again."""
        for partition in self.partitions:
            target, home = self.directory_of(partition), self._home.get(partition)
            if target is not None and home is not None:
                ids = {each.topic_ids[partition] for each in (target, home) if partition in each.topic_ids}
                if len(ids) > 1:
                    self.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        """Give up a copy, if there is one."""
        directory = self.directory_of(partition)
        if directory is not None:
            directory.doom(partition, future=True)

    def swap(self, partition: TopicPartition) -> PartitionLog:
        """The copy is the log from now on, and the one that was goes."""
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
            pass  # The old log dir has failed. Whatever is left there is found when it is back.
        target.checkpoint()
        self.step(MoveStep.L6)
        return log


def newer(one: PartitionLog, other: PartitionLog) -> PartitionLog:
    """Which of two logs of a partition to keep: the one that its last leader wrote more to."""
    return max(one, other, key=lambda log: (log.epochs.latest, log.end_offset))
