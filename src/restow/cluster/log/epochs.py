"""The leader epochs of a log: at which offset each leader started to write (KIP-101).

A returning follower asks the leader where its last epoch ended, and cuts its own log there. High watermarks
are not enough, because followers get them one fetch late.
"""

from __future__ import annotations

from typing import NamedTuple

NO_EPOCH = -1
NO_OFFSET = -1


class EpochStart(NamedTuple):
    """A leader epoch and its start offset."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """An epoch and the offset after its last record; both -1 if unknown."""

    epoch: int
    end_offset: int


UNKNOWN_EPOCH = EpochEndOffset(NO_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """Epochs and start offsets, both rising. Methods return whether anything changed."""

    def __init__(self, entries: tuple[EpochStart, ...] = ()) -> None:
        self._entries = list(entries)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All entries, the oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The last epoch, or -1."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Start an epoch at this offset. Contradicting entries are removed."""
        entries = self._entries
        if epoch < 0 or (entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset):
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the largest known epoch up to the requested one, and its end.

        An epoch above all known ones is unknown. For one below all known ones, return that epoch with the
        start of the first known: the log has nothing of it.
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
        """Return the epoch of the offset, or -1."""
        for entry in reversed(self._entries):
            if entry.start_offset <= offset:
                return entry.epoch
        return NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop epochs that start at the new log end or later."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        changed = len(kept) != len(self._entries)
        self._entries = kept
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop epochs before the new log start; the current one then starts there."""
        in_force = self.epoch_of(start_offset)
        kept = [entry for entry in self._entries if entry.start_offset > start_offset]
        if in_force != NO_EPOCH:
            kept.insert(0, EpochStart(in_force, start_offset))
        changed = kept != self._entries
        self._entries = kept
        return changed
