"""One round: find what is new, compute the rates from then on, and put them in place."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from restow._frozen import frozen
from restow.pipeline.checkpoints import CheckpointTaken, hold
from restow.pipeline.connect import is_connect
from restow.pipeline.expectations import check
from restow.pipeline.jobs.hours import REACHED, reached_of
from restow.pipeline.jobs.leadership import turns
from restow.pipeline.jobs.weeks import HOURS
from restow.pipeline.keeping.commit import KeptTables
from restow.pipeline.keeping.making import Making
from restow.pipeline.keeping.record import RatesRecord, changes
from restow.pipeline.keeping.since import COMMITS, TURNS, commits
from restow.pipeline.schemas import SAMPLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from restow.pipeline.answers import Answers
    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.keeping.record import FileChanges, Folders
    from restow.pipeline.lake import Lake


@frozen
class KeeperRound:
    """What one round has done."""

    record: RatesRecord
    """What the rates are made of now."""
    new_files: int
    since_us: Mapping[str, int]
    """By cluster: from when on rates were computed anew; empty if they were current."""
    whole: bool
    """Whether all rates were computed, because nothing was known of how the old ones were made."""
    checked: tuple[Checked, ...] = ()
    """What was found in the new samples and rates."""


@frozen
class KeptSums:
    """What is kept of all samples, so that jobs need not read them again, nor all rates."""

    hours: DataFrame
    """The rows of `HOURS`."""
    reached: DataFrame
    answers: Mapping[str, Answers]


class Keeper:
    """Keeps the rates of one lake current."""

    def __init__(self, lake: Lake, windows: Windows) -> None:
        self.kept = KeptTables(lake)
        self._lake = lake
        self._windows = windows

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the tables of a local lake for this block, or raise `CheckpointTaken`."""
        with ExitStack() as stack:
            if not is_connect(self._lake.spark):
                try:
                    stack.enter_context(hold(self.kept.root))
                except CheckpointTaken as error:
                    raise CheckpointTaken(
                        f"another process makes the tables of {self._lake.path}: wait for it, or stop it"
                    ) from error
            yield

    def round(self) -> KeeperRound:
        """Bring the rates to what all samples in the lake make of them."""
        record = self.kept.record()
        how = (self._windows.seconds, float(self._windows.gap_s))
        if record is not None and (record.window_s, record.gap_s) != how:
            record = None
        there = {about.name: self.kept.files_of(about) for about in SAMPLED}
        found = {
            name: changes({} if record is None else record.files.get(name, {}), folders)
            for name, folders in there.items()
        }
        if record is not None and not any(each.folders for each in found.values()):
            return KeeperRound(record=record, new_files=0, since_us={}, whole=False)
        return self._make(there, found, record)

    def sums(self, record: RatesRecord) -> KeptSums:
        """Return what is kept beside the rates of this record."""
        hours, reached = (self.kept.rows(about, self.kept.folders(about)) for about in (HOURS, REACHED))
        return KeptSums(hours=hours, reached=reached_of(reached), answers=record.answers)

    def _make(
        self,
        files: Mapping[str, Folders],
        found: Mapping[str, FileChanges],
        before: RatesRecord | None,
    ) -> KeeperRound:
        """Compute rates and what is kept beside them, and commit all of it."""
        making = Making(self.kept, self._lake, self._windows, files, found, before)
        checked = check([(rows, about) for about, rows in making.added()])
        emptied = [*making.stage_days(TURNS, turns), *making.stage_days(COMMITS, commits)]
        since = making.since()
        emptied += making.stage_rates(since)
        new = RatesRecord(
            name=uuid4().hex,
            window_s=self._windows.seconds,
            gap_s=float(self._windows.gap_s),
            files=files,
            answers=making.answers(),
        )
        self.kept.commit(making.staged, new, emptied=emptied, whole=before is None)
        if making.checked is not None:
            checked.append(making.checked)
        return KeeperRound(
            record=new,
            new_files=sum(len(names) for each in found.values() for names in each.added.values()),
            since_us=since,
            whole=before is None,
            checked=tuple(checked),
        )
