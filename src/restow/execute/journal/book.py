"""A run's journal and what it adds up to, kept together: what is written counts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.journal.ledger import ledger_of
from restow.execute.journal.records import step_document

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.execute.journal.journal import Journal, JournalEntry
    from restow.execute.journal.ledger import RunLedger
    from restow.model import Snapshot, TopicPartition


class Book:
    """An open journal whose first entry is the beginning of a run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ledger = ledger_of(journal.entries, journal.folder)

    @property
    def folder(self) -> str:
        return self._journal.folder

    @property
    def ledger(self) -> RunLedger:
        return self._ledger

    def write(self, kind: str, **facts: object) -> JournalEntry:
        """Returns when the entry is on the disk."""
        entry = self._journal.write(kind, **facts)
        self._ledger = self._ledger.after(entry)
        return entry

    def settle(self, under_way: Collection[TopicPartition], snapshot: Snapshot) -> None:
        """Write down the end of steps that came to it while nobody looked; these are still `under_way`."""
        lost = [step for name, step in self._ledger.under_way.items() if name not in under_way]
        now = {step.partition: snapshot.partition(step.partition) for step in lost}
        arrived = [s for s in lost if (p := now[s.partition]) is not None and p.replicas == s.after]
        if arrived:
            self.write("finished", steps=[step_document(step) for step in arrived])
        if gone := [list(step.partition) for step in lost if step not in arrived]:
            self.write("cancelled", partitions=gone)

    def close(self) -> None:
        self._journal.close()
