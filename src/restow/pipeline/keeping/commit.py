"""Replace folders of several tables and the record at once, as far as any restart can tell.

    LAKE/_kept/staging/<name>/<table>/cluster=<id>/day=<day>/…    being written
    LAKE/_kept/redo/…                                            whole: one rename made it the truth
    LAKE/_kept/turns, commits, hours, reached                    what is needed of older samples (since.py)

A folder moves from `redo` to its place after what lay there has moved into `redo/old`. The first process
after a kill does what is left of that; doing it again changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from restow.pipeline.files import lake_files
from restow.pipeline.jobs.rates import TABLE as RATES
from restow.pipeline.keeping.record import Folders, RatesRecord, by_folder, record_from
from restow.pipeline.schemas import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from restow.pipeline.lake import Lake
    from restow.pipeline.schemas import Table

_KEPT = "_kept"
_RECORD, _REDO, _DERIVED = "_made_of.json", "redo.json", "derived.json"
_OLD_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Staged:
    """A folder with tables beside the lake's, which no reader sees."""

    path: str

    def home(self, about: Table) -> str:
        return f"{self.path}/{about.name}"


class KeptTables:
    """The rates of a lake and what belongs to them."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        lake.in_folders()  # or refuse the lake
        self._files = lake_files(lake.spark)
        self.root = f"{lake.path}/{_KEPT}"

    def record(self) -> RatesRecord | None:
        """Finish an unfinished commit, and return the record of the rates; None if they have none."""
        redo = f"{self.root}/redo"
        if self._files.exists(redo):
            self._redo(redo)
        return record_from(self._files.read_text(f"{self._home(RATES)}/{_RECORD}"))

    def forget(self) -> None:
        """Give up an unfinished commit: somebody else makes all rates anew."""
        redo = f"{self.root}/redo"
        if self._files.exists(redo):
            self._put_away(redo)

    def derived(self) -> str | None:
        """Return what `note_derived` was told last."""
        return self._files.read_text(f"{self.root}/{_DERIVED}")

    def note_derived(self, what: str) -> None:
        """Note of what the tables beside the rates are made."""
        self._files.write_text(f"{self.root}/{_DERIVED}", what)

    def staged(self) -> Staged:
        """Return a new folder to stage tables in; remove what killed rounds have left."""
        self._files.remove_old(f"{self.root}/staging", _OLD_S)
        return Staged(f"{self.root}/staging/{uuid4().hex}")

    def folders(self, about: Table) -> Folders:
        """Return the files of a kept table that are in place."""
        return self._within(self._home(about))

    def files_of(self, about: Table) -> Folders:
        """Return the files of a table of samples."""
        return self._within(self.home_in_lake(about))

    def folders_staged(self, about: Table, staged: Staged) -> Folders:
        return self._within(staged.home(about))

    def home_in_lake(self, about: Table) -> str:
        return f"{self._lake.path}/{about.name}/v{VERSION}"

    def rows(self, about: Table, folders: Folders, staged: Staged | None = None) -> DataFrame:
        """Return the rows of these folders, in place or staged."""
        home = self._home(about) if staged is None else staged.home(about)
        paths = [f"{home}/{folder}/{name}" for folder, names in folders.items() for name in names]
        return self._lake.in_folders().rows_in(about, home, paths)

    def commit(
        self,
        staged: Staged,
        record: RatesRecord,
        *,
        emptied: Iterable[tuple[Table, str]] = (),
        whole: bool = False,
    ) -> None:
        """Put staged folders in place of those that are there, with their record.

        `emptied` folders go away. With `whole`, nothing of the old tables stays.
        """
        gone = [f"{self._home(about)}/{folder}" for about, folder in emptied]
        if whole:
            gone = [self._home(about) for about in kept_tables()]
        told = {"gone": gone, "record": record.text()}
        self._files.write_text(f"{staged.path}/{_REDO}", json.dumps(told))
        self._files.move(staged.path, f"{self.root}/redo")
        self._redo(f"{self.root}/redo")

    def _redo(self, redo: str) -> None:
        """Do what is left of a commit."""
        told = json.loads(self._files.read_text(f"{redo}/{_REDO}") or "{}")
        for number, path in enumerate(told.get("gone", ())):
            mark = f"{redo}/gone/{number}"
            if self._files.exists(mark):
                continue
            self._files.remove(path)
            self._files.write_text(mark, "")
        for about in kept_tables():
            home = f"{redo}/{about.name}"
            for folder in self._within(home):
                place = f"{self._home(about)}/{folder}"
                if self._files.exists(place):
                    self._files.move(place, f"{redo}/old/{about.name}/{folder}")
                self._files.move(f"{home}/{folder}", place)
        if "record" in told:
            self._files.write_text(f"{self._home(RATES)}/{_RECORD}", told["record"])
        self._put_away(redo)

    def _put_away(self, redo: str) -> None:
        """Remove a commit that is done. The rename comes first: half of it would be done again."""
        done = f"{self.root}/staging/done-{uuid4().hex}"
        self._files.move(redo, done)
        self._files.remove(done)

    def _within(self, home: str) -> Folders:
        return by_folder(self._files.within(home) if self._files.exists(home) else ())

    def _home(self, about: Table) -> str:
        if about.name == RATES.name:
            return self.home_in_lake(about)
        return f"{self.root}/{about.name}"


def kept_tables() -> tuple[Table, ...]:
    from restow.pipeline.jobs.hours import REACHED
    from restow.pipeline.jobs.weeks import HOURS
    from restow.pipeline.keeping.since import COMMITS, TURNS

    return RATES, HOURS, REACHED, TURNS, COMMITS
