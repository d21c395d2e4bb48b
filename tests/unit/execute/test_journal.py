"""The journal: no entry is lost, a torn last line is ignored, and other damage is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.execute.journal.journal import FILE_NAME, DamagedJournal, Journal, read_journal
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from pathlib import Path


def journal(folder: Path) -> Journal:
    return Journal(SystemDisk(), SystemClock(), str(folder))


def test_journal_keeps_its_entries_and_is_continued(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.write("begun", plan="ä", limit=None)
    first.close()
    second = journal(tmp_path)
    second.write("submitted", replicas=[1, 2])
    assert [(each.number, each.kind, dict(each.facts)) for each in second.entries] == [
        (0, "begun", {"plan": "ä", "limit": None}),
        (1, "submitted", {"replicas": [1, 2]}),
    ]
    assert read_journal(SystemDisk(), str(tmp_path)) == second.entries
    second.close()


def test_torn_last_line_is_ignored(tmp_path: Path) -> None:
    book = journal(tmp_path)
    book.write("begun", plan=1)
    book.write("submitted", partition="t-0")
    book.close()
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole) - 1):
        path.write_bytes(whole[:cut])
        again = journal(tmp_path)
        assert [each.kind for each in again.entries] == ["begun"]
        assert path.read_bytes() == whole[:first]
        again.close()


def test_damage_in_the_middle_is_reported(tmp_path: Path) -> None:
    book = journal(tmp_path)
    for number in range(3):
        book.write("step", number=number)
    book.close()
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes().replace(b'"number": 1', b'"number": 7'))
    with pytest.raises(DamagedJournal, match="line 2: this is not what was written"):
        journal(tmp_path)


def test_missing_line_is_damage(tmp_path: Path) -> None:
    book = journal(tmp_path)
    for number in range(3):
        book.write("step", number=number)
    book.close()
    path = tmp_path / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(DamagedJournal):
        read_journal(SystemDisk(), str(tmp_path))
