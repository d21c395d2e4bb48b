"""A run's journal and what it adds up to, kept together: what is written counts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.ledger import ledger_of

if TYPE_CHECKING:
    from restow.execute.journal import Entry, Journal
    from restow.execute.ledger import Ledger


class Book:
    """An open journal whose first entry is the beginning of a run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ledger = ledger_of(journal.entries, journal.folder)

    @property
    def folder(self) -> str:
        return self._journal.folder

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    def write(self, kind: str, **facts: object) -> Entry:
        """Returns when the entry is on the disk."""
        entry = self._journal.write(kind, **facts)
        self._ledger = self._ledger.after(entry)
        return entry

    def close(self) -> None:
        self._journal.close()
