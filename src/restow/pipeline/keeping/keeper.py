"""One round: find what is new, compute the rates from then on, and put them in place."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from restow._frozen import frozen
from restow.pipeline.checkpoints import CheckpointTaken, hold
from restow.pipeline.connect import is_connect
from restow.pipeline.expectations import check
from restow.pipeline.jobs.leadership import turns
from restow.pipeline.jobs.rates import TABLE as RATES
from restow.pipeline.keeping.commit import KeptTables
from restow.pipeline.keeping.making import Making
from restow.pipeline.keeping.record import RatesRecord, changes
from restow.pipeline.keeping.since import COMMITS, TURNS, commits
from restow.pipeline.schemas import SAMPLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.keeping.record import FileChanges
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
        new = RatesRecord(name=uuid4().hex, window_s=how[0], gap_s=how[1], files=there)
        return self._make(new, found, whole=record is None)

    def _make(self, new: RatesRecord, found: Mapping[str, FileChanges], *, whole: bool) -> KeeperRound:
        """Compute rates, turns and commits, and commit them."""
        making = Making(self.kept, self._lake, self._windows, new, found, whole=whole)
        checked = check([(rows, about) for about, rows in making.added()])
        emptied = [*making.stage_days(TURNS, turns), *making.stage_days(COMMITS, commits)]
        since = making.since()
        emptied += making.stage_rates(since)
        self.kept.commit(making.staged, (RATES, TURNS, COMMITS), new, emptied=emptied, whole=whole)
        if making.checked is not None:
            checked.append(making.checked)
        return KeeperRound(
            record=new,
            new_files=sum(len(names) for each in found.values() for names in each.added.values()),
            since_us=since,
            whole=whole,
            checked=tuple(checked),
        )
