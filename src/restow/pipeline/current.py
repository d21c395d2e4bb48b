"""Keep the tables and load models of a lake current while samples arrive: `restow pipeline stream`.

The rates are computed anew only from the first moment that new samples can change (`keeping/`). What is made
of them is small: it is made whole, each time.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from restow._frozen import frozen
from restow.pipeline.jobs.rates import Windows
from restow.pipeline.keeping import Keeper
from restow.pipeline.load_files import without_load, write_load
from restow.pipeline.running import check_statistic
from restow.pipeline.work import Work
from restow.runtime.clock import SystemClock
from restow.sizes import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.forecast import ForecastLimits
    from restow.pipeline.lake import Lake

_TRIES = 3
_GONE = ("FILE_NOT_EXIST", "FileNotFoundException")
"""What Spark says of files that compaction has merged since they were listed."""


@frozen
class Wanted:
    """What is to be kept current, and how it is computed."""

    window: str
    limits: ForecastLimits
    load: str | None = None
    """The folder for load models."""
    statistic: str = "mean"

    def text(self, made_of: str) -> str:
        """Return what differs whenever the tables that are made of these rates would differ."""
        return json.dumps(
            [made_of, self.window, self.limits.fill, dict(self.limits.rates), self.load, self.statistic]
        )


@frozen
class Update:
    """What one update has done."""

    new_files: int
    since: Mapping[str, datetime]
    """By cluster: from when on rates were computed anew."""
    whole: bool
    """Whether all rates were computed."""
    tables: tuple[str, ...]
    """The tables that were written; none if all of them were current."""
    loads: tuple[str, ...]
    without_load: int
    alerts: tuple[str, ...]
    """What the alerts say, the most severe first."""
    checked: tuple[Checked, ...] = ()

    def document(self) -> dict[str, object]:
        return {
            "new_files": self.new_files,
            "since": {name: moment.isoformat() for name, moment in self.since.items()},
            "whole": self.whole,
            "tables": list(self.tables),
            "loads": list(self.loads),
            "without_load": self.without_load,
            "alerts": list(self.alerts),
            "checks": [each.document() for each in self.checked],
        }


class CurrentTables:
    """The tables of one lake. One process at a time keeps them current."""

    def __init__(self, lake: Lake, wanted: Wanted) -> None:
        check_statistic(wanted.statistic)
        self._wanted = wanted
        self._work = Work(lake)
        self._windows = Windows(seconds=max(1, milliseconds(wanted.window, "--window") // 1000))
        self._keeper = Keeper(lake, self._windows)

    def held(self) -> AbstractContextManager[None]:
        """Lock the tables for a block, or raise `CheckpointTaken`."""
        return self._keeper.held()

    def update(self) -> Update:
        """Bring all tables to what `restow pipeline run` would make of the samples that are there."""
        for left in reversed(range(_TRIES)):
            try:
                return self._update()
            except PySparkException as error:
                if not left or not any(word in str(error) for word in _GONE):
                    raise
        raise AssertionError

    def _update(self) -> Update:
        if self._work.samples("assignment", distinct=False).isEmpty():
            return _nothing()
        done = self._keeper.round()
        made_of = self._wanted.text(done.record.name)
        if self._keeper.kept.derived() == made_of:
            return _nothing()
        self._work.checked = [*done.checked]
        self._work.kept = self._keeper.sums(done.record)
        tables = ("rates", *self._work.derive(self._wanted.limits))
        loads: list[str] = []
        if self._wanted.load is not None:
            made_ms = SystemClock().now_ms()
            made = self._work.loads(self._windows)
            loads = write_load(made, self._wanted.load, made_ms=made_ms, statistic=self._wanted.statistic)
        unknown = without_load(self._work.made("model"), self._wanted.statistic) if loads else 0
        alerts = self._work.alerts_told()
        self._keeper.kept.note_derived(made_of)
        return Update(
            new_files=done.new_files,
            since={name: datetime.fromtimestamp(us / 1e6, UTC) for name, us in done.since_us.items()},
            whole=done.whole,
            tables=tables,
            loads=tuple(loads),
            without_load=unknown,
            alerts=alerts,
            checked=tuple(self._work.checked),
        )


def _nothing() -> Update:
    return Update(new_files=0, since={}, whole=False, tables=(), loads=(), without_load=0, alerts=())
