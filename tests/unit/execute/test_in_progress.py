"""The reassignments in progress: the journal is their only record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.execute.journal.journal import Journal, read_journal
from restow.execute.journal.ledger import RunJournal
from restow.execute.run.in_progress import ReassignmentsInProgress, SubmittedStep
from restow.model import Move, Plan, Step, TopicPartition
from restow.plan.files.text import document_of, step_document
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from pathlib import Path

FIRST = Step(partition=TopicPartition("t", 0), before=(1, 2), after=(1, 3))
SECOND = Step(partition=TopicPartition("t", 1), before=(1, 2), after=(1, 4))


@pytest.fixture
def book(tmp_path: Path) -> RunJournal:
    journal = Journal(SystemDisk(), SystemClock(), str(tmp_path))
    journal.write("began", plan=document_of(Plan(cluster_id="c", created_ms=0, moves=())), who={})
    return RunJournal(journal)


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("finished", {"steps": [step_document(FIRST)]}),
        ("cancelled", {"partitions": [["t", 0]]}),
        ("found", {"partitions": [["t", 0]]}),
        ("dropped", {"partition": ["t", 0], "reason": "somebody else moves it"}),
    ],
)
def test_entry_of_the_journal_ends_a_reassignment(
    book: RunJournal, kind: str, facts: dict[str, object]
) -> None:
    in_progress = ReassignmentsInProgress(book)
    in_progress.begin([SubmittedStep(step=FIRST), SubmittedStep(step=SECOND)])
    assert in_progress.steps == [FIRST, SECOND]
    book.write(kind, **facts)
    assert in_progress.steps == [SECOND]
    assert len(in_progress) == 1
    assert list(in_progress.partitions) == [SECOND.partition]


def test_second_step_that_was_dropped_counts_as_given_up_once_the_run_is_resumed(tmp_path: Path) -> None:
    move = Move(partition=FIRST.partition, before=(1, 2), after=(3, 4), size_bytes=0)
    plan = Plan(cluster_id="c", created_ms=0, moves=(move,))
    journal = Journal(SystemDisk(), SystemClock(), str(tmp_path))
    journal.write("began", plan=document_of(plan), who={})
    book = RunJournal(journal)
    last = Step(partition=FIRST.partition, before=FIRST.after, after=move.after)
    book.write("submit", steps=[step_document(FIRST)])
    book.write("finished", steps=[step_document(FIRST)])
    book.write("submit", steps=[step_document(last)])
    assert book.ledger.given_up == []
    book.write("dropped", partition=list(move.partition), reason="it has other replicas")
    book.write("resumed")
    assert book.ledger.given_up == [last]
    book.write("finished", steps=[step_document(last)])
    assert book.ledger.given_up == []


def test_step_that_is_submitted_again_is_seen_as_new(book: RunJournal) -> None:
    in_progress = ReassignmentsInProgress(book)
    in_progress.begin([SubmittedStep(step=FIRST, seen=True, odd_since_s=1.0)])
    book.write("cancelled", partitions=[["t", 0]])
    in_progress.begin([SubmittedStep(step=FIRST)])
    (again,) = in_progress
    assert (again.seen, again.odd_since_s) == (False, None)


def test_reassignment_that_the_journal_has_is_not_written_again(book: RunJournal) -> None:
    ReassignmentsInProgress(book).begin([SubmittedStep(step=FIRST)])
    found_again = ReassignmentsInProgress(book)
    found_again.begin([SubmittedStep(step=FIRST), SubmittedStep(step=SECOND)])
    assert [
        len(each.facts["steps"]) for each in read_journal(SystemDisk(), book.folder) if each.kind == "submit"
    ] == [1, 1]
    assert found_again.steps == [FIRST, SECOND]
