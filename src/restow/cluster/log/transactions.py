"""Transactions in one log: those that are open, those that ended above the high watermark, and aborted ones.

The last stable offset is the first offset of a transaction whose end is not known to all in-sync replicas.
Readers of committed records read up to there, and leave out the records of aborted transactions.
Every segment has an index of the transactions whose abort marker it holds: Kafka's `.txnindex`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from restow.runtime.disk import Disk

TXN_INDEX_SUFFIX = ".txnindex"
_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class EndedTransaction(NamedTuple):
    """A transaction from its first record to its end marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class AbortedTransaction(NamedTuple):
    """An aborted transaction, and the last stable offset right after its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class OpenTransactions:
    """The unstable transactions of a log, by producer id."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """First offsets by producer id; they rise, because transactions begin in the order of the log."""
        self._unreplicated: list[EndedTransaction] = []

    @property
    def first_offset(self) -> int | None:
        """The first offset of the earliest unstable transaction."""
        first = next(iter(self._open.values()), None)
        for ended in self._unreplicated:
            if first is None or ended.first_offset < first:
                first = ended.first_offset
        return first

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._open)

    def begin(self, producer_id: int, first_offset: int) -> None:
        self._open[producer_id] = first_offset

    def end(self, ended: EndedTransaction) -> int:
        """End a transaction. Return the last stable offset once its marker is replicated."""
        self._open.pop(ended.producer_id, None)
        self._unreplicated.append(ended)
        return next(iter(self._open.values()), ended.last_offset + 1)

    def replicated_to(self, high_watermark: int) -> None:
        """Forget transactions whose marker is below the high watermark."""
        if self._unreplicated:
            self._unreplicated = [each for each in self._unreplicated if each.last_offset >= high_watermark]


class TransactionIndex:
    """The aborted transactions of one segment, in the order of their markers. Read on first use."""

    def __init__(self, disk: Disk, path: str, *, is_new: bool) -> None:
        self._disk = disk
        self._path = path
        self._entries: list[AbortedTransaction] | None = [] if is_new else None

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def add(self, aborted: AbortedTransaction) -> None:
        """Append an entry, unless it is there already: batches are replayed after a restart."""
        entries = self.entries
        if entries and entries[-1].last_offset >= aborted.last_offset:
            return
        entries.append(aborted)
        file = self._disk.open(self._path, create=True)
        try:
            file.append(_ENTRY.pack(_VERSION, *aborted))
        finally:
            file.close()

    def cut(self, end_offset: int) -> None:
        """Drop entries whose marker is not before the offset, and the rest of a torn one."""
        if self._disk.exists(self._path):
            self.replace(each for each in self.entries if each.last_offset < end_offset)

    def replace(self, entries: Iterable[AbortedTransaction]) -> None:
        """Write exactly these entries."""
        self._entries = list(entries)
        if self._entries:
            data = b"".join(_ENTRY.pack(_VERSION, *each) for each in self._entries)
            self._disk.write_atomically(self._path, data, durable=False)
        else:
            self.remove()

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if self._disk.exists(self._path):
            self._disk.remove(self._path)

    def _read(self) -> list[AbortedTransaction]:
        if not self._disk.exists(self._path):
            return []
        data = self._disk.read_bytes(self._path)
        whole = len(data) - len(data) % _ENTRY.size
        return [AbortedTransaction(*entry[1:]) for entry in _ENTRY.iter_unpack(data[:whole])]


def aborted_in(
    indexes: Iterable[TransactionIndex], offset: int, end_offset: int
) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions that have offsets in the range, from the indexes of that offset on."""
    for index in indexes:
        for each in index.entries:
            if each.last_offset >= offset and each.first_offset < end_offset:
                yield each
            if each.last_stable_offset >= end_offset:
                return
