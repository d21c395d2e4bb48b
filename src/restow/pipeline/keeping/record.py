"""The files of samples that the rates are made of, and what differs from those that are there."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.pipeline.names import value_of
from restow.pipeline.schemas import CLUSTER, DAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.pipeline.answers import Answers

_VERSION = 2
Folders = dict[str, tuple[str, ...]]
"""The names of files by the folder of their cluster and day, such as `cluster=c/day=2026-11-01`."""


def by_folder(paths: Iterable[str]) -> Folders:
    """Return paths below a table's home by folder, without those that readers do not see."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder.startswith(f"{CLUSTER}=") and f"/{DAY}=" in folder and not name.startswith(("_", ".")):
            found[folder].append(name)
    return {folder: tuple(sorted(names)) for folder, names in sorted(found.items())}


def cluster_of(folder: str) -> str:
    return value_of(folder.partition("/")[0].partition("=")[2])


def day_of(folder: str) -> date:
    return date.fromisoformat(folder.rpartition("=")[2])


def begin_us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000


@frozen
class RatesRecord:
    """What the rates of a lake are made of, and how."""

    name: str
    """Different for each commit."""
    window_s: int
    gap_s: float
    files: Mapping[str, Folders]
    """By table of samples."""
    answers: Mapping[str, Answers]
    """The newest in these samples, by table."""

    def text(self) -> str:
        return json.dumps(
            {
                "version": _VERSION,
                "name": self.name,
                "window_s": self.window_s,
                "gap_s": self.gap_s,
                "files": self.files,
                "answers": {
                    table: [[*by, us] for by, us in each.items()] for table, each in self.answers.items()
                },
            }
        )


def record_from(text: str | None) -> RatesRecord | None:
    """Parse a record. One that cannot be read is none: all is computed anew then."""
    try:
        told = json.loads(text or "")
        if told["version"] != _VERSION:
            return None
        files = {
            table: {folder: tuple(names) for folder, names in folders.items()}
            for table, folders in told["files"].items()
        }
        answers = {
            table: {(cluster, broker): int(us) for cluster, broker, us in each}
            for table, each in told["answers"].items()
        }
        return RatesRecord(
            name=told["name"],
            window_s=told["window_s"],
            gap_s=told["gap_s"],
            files=files,
            answers=answers,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@frozen
class FileChanges:
    """How one table of samples differs from the record."""

    added: Folders = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    """Folders from which files went away, such as by compaction."""

    @property
    def folders(self) -> set[str]:
        return {*self.added, *self.lost}


def changes(before: Folders, now: Folders) -> FileChanges:
    """Return the files that are new, and the folders that have lost any."""
    added = {
        folder: fresh for folder, names in now.items() if (fresh := _without(names, before.get(folder, ())))
    }
    lost = frozenset(folder for folder, names in before.items() if _without(names, now.get(folder, ())))
    return FileChanges(added=added, lost=lost)


def _without(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    there = frozenset(known)
    return tuple(name for name in names if name not in there)
