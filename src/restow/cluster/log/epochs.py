"""The leader epochs of a log: which leader began to write at which offset (KIP-101).

A follower that comes back asks the leader where its last epoch ended, and cuts its own log off
there. High watermarks are not enough for that: they are known to followers one fetch too late.
"""

from __future__ import annotations

from typing import NamedTuple

NO_EPOCH = -1
NO_OFFSET = -1


class EpochStart(NamedTuple):
    """A leader's epoch and the offset of the first record it wrote, or would have."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """An epoch and the offset behind its last record; both -1 if nothing is known."""

    epoch: int
    end_offset: int


UNKNOWN_EPOCH = EpochEndOffset(NO_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """Epochs and start offsets, both rising. Changing says whether there was anything to change."""

    def __init__(self, entries: tuple[EpochStart, ...] = ()) -> None:
        self._entries = list(entries)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All of them, the oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The last epoch, or -1."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """From this offset on the epoch is the leader's. What the new entry contradicts goes."""
        entries = self._entries
        if epoch < 0 or (entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset):
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch we know that is not above the one asked for, and where it ended.

        An epoch above all of ours is unknown. For one below all of ours the answer is that epoch
        with the start of our first: nothing of it is here.
        """
        if epoch == NO_EPOCH or not self._entries or epoch > self._entries[-1].epoch:
            return UNKNOWN_EPOCH
        if epoch == self._entries[-1].epoch:
            return EpochEndOffset(epoch, log_end_offset)
        known = epoch
        for entry in self._entries:
            if entry.epoch > epoch:
                return EpochEndOffset(known, entry.start_offset)
            known = entry.epoch
        raise AssertionError("an epoch below the last one has one above it")

    def epoch_of(self, offset: int) -> int:
        """The epoch that wrote the offset, or -1."""
        for entry in reversed(self._entries):
            if entry.start_offset <= offset:
                return entry.epoch
        return NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """The log now ends there: epochs that began there or later are gone."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        changed = len(kept) != len(self._entries)
        self._entries = kept
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log now begins there: earlier epochs are gone, and the one in force begins with the log."""
        in_force = self.epoch_of(start_offset)
        kept = [entry for entry in self._entries if entry.start_offset > start_offset]
        if in_force != NO_EPOCH:
            kept.insert(0, EpochStart(in_force, start_offset))
        changed = kept != self._entries
        self._entries = kept
        return changed

    def clear(self) -> bool:
        """Forget all."""
        changed = bool(self._entries)
        self._entries = []
        return changed
