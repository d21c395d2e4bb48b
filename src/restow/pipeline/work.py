"""Run the jobs on the lake: the input of each, their order, and their output.

samples ─► rates ─► model ─► skew, forecast ─► alerts
                      └────► fleet                     groups ─► lab
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.pipeline.answers import ANSWERING, newest_answers, recent
from restow.pipeline.expectations import Expected, check, usable
from restow.pipeline.schemas import AT, SAMPLED, table
from restow.pipeline.session import is_small

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date, datetime

    from pyspark.sql import DataFrame

    from restow.pipeline.answers import Recent
    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.forecast import ForecastLimits
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.keeping import KeptSums
    from restow.pipeline.lake import Lake
    from restow.pipeline.load_files import Loads
    from restow.pipeline.planning import FleetRequest


@frozen
class Scope:
    """The samples that count: by cluster, start and end; None means all."""

    clusters: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


class Work:
    """The jobs on one lake, within one scope. Spark runs a job only when its rows are read."""

    def __init__(self, lake: Lake, scope: Scope | None = None) -> None:
        self.lake = lake
        self.scope = scope or Scope()
        self._apart: dict[str, DataFrame] = {}
        self._recent: dict[str, Recent | None] | None = None
        self._few_leaders: bool | None = None
        self.kept: KeptSums | None = None
        """What an incremental run keeps of all samples, if this is one."""
        self.checked: list[Checked] = []
        """What was found in the tables that were written."""

    def samples(self, name: str, *, distinct: bool = True) -> DataFrame:
        """Return the usable rows of a table of samples."""
        return usable(self.all_samples(name, distinct=distinct), table(name))

    def all_samples(
        self, name: str, *, distinct: bool = True, days: Iterable[date] | None = None
    ) -> DataFrame:
        """Return all rows of a table of samples, or those of some days."""
        scope = self.scope
        return self.lake.read(
            name, clusters=scope.clusters, since=scope.since, until=scope.until, days=days, distinct=distinct
        )

    def newest(self, name: str, *, distinct: bool = False) -> DataFrame:
        """Return the usable samples of each cluster's newest look, and at most of the days that have one.

        Of replicas and disks these are each broker's newest answers. There is no need to read others to know
        what is there now.
        """
        if self._recent is None:
            self._recent = {} if is_small(self.lake.path) else self._find_recent()
        about = table(name)
        looks = self._recent.get(name)
        if looks is None:
            return usable(self.all_samples(name, distinct=distinct), about)
        rows = self.all_samples(name, distinct=distinct, days=looks.days)
        return usable(rows.where(f.col(AT) >= f.lit(looks.since)), about)

    def _find_recent(self) -> dict[str, Recent | None]:
        if self.kept is None:
            found = newest_answers({name: self.samples(name, distinct=False) for name in ANSWERING})
        else:
            found = dict(self.kept.answers)
        return {name: recent(each.values()) for name, each in found.items()}

    def check_samples(self) -> None:
        """Note how many samples cannot be used."""
        self.checked += check([(self.all_samples(about.name, distinct=False), about) for about in SAMPLED])

    def made(self, name: str) -> DataFrame:
        """Return a table that an earlier run wrote to the lake."""
        if name in self._apart:
            return self._apart[name]
        return self.lake.read(name, clusters=self.scope.clusters)

    def keep(self, name: str, rows: DataFrame) -> DataFrame:
        """Write the good rows of a result to the lake, beside the rows of other clusters; read it back.

        A lake as it was stays as it was: there, the result is only kept for this session.
        """
        expected = Expected(rows, table(name))
        rows = expected.rows
        if self.lake.past is not None:
            self._apart[name] = rows.persist()
            return self._apart[name]
        if self.scope.clusters is not None:
            there = self.lake.read(name)
            rows = rows.unionByName(there.where(~there["cluster"].isin(*self.scope.clusters)))
        self.lake.write(rows, name)
        made = self.made(name)
        found = expected.checked()
        self.checked += [found] if found is not None else check([(made, table(name))])
        return made

    def check(self, name: str = "assignment") -> None:
        """Raise an error if there are no samples."""
        if self.samples(name, distinct=False).isEmpty():
            where = f"the lake {self.lake.path!r}"
            if self.lake.read(name, distinct=False).isEmpty():
                raise InvalidInput(f"{where} has no samples of {name} yet: `restow collect` takes them")
            raise InvalidInput(f"{where} has samples of {name}, but none of these clusters and times")

    def rates(self, windows: Windows | None = None) -> DataFrame:
        from restow.pipeline.jobs.rates import Windows, rates_beside

        names = ("replicas", "offsets", "groups")
        replicas, offsets, groups = (self.samples(name, distinct=False) for name in names)
        return rates_beside(self._leaders(), replicas, offsets, groups, windows or Windows())

    def _leaders(self) -> DataFrame:
        from restow.pipeline.jobs.leadership import has_few_runs, joinable, leadership

        assignment = self.samples("assignment", distinct=False)
        if self._few_leaders is None:
            self._few_leaders = is_small(self.lake.path) or has_few_runs(assignment)
        return joinable(leadership(assignment), few=self._few_leaders)

    def model(self) -> DataFrame:
        from restow.pipeline.jobs.model import model, model_of_hours

        if self.kept is not None:
            return model_of_hours(self.kept.hours, self.newest("assignment"))
        return model(self.made("rates"), self.newest("assignment"))

    def loads(self, windows: Windows) -> Loads:
        """Return what load models are made of."""
        from restow.pipeline.jobs.hours import hours, hours_of_week, reached
        from restow.pipeline.load_files import Loads

        model = self.made("model")
        if self.kept is not None:
            return Loads(model=model, hours=hours_of_week(self.kept.hours), reached=self.kept.reached)
        rates = self.made("rates")
        return Loads(model=model, hours=hours(rates), reached=reached(rates, self._leaders(), windows))

    def skew(self) -> DataFrame:
        from restow.pipeline.jobs.skew import skew

        replicas, assignment, disks = (self.newest(name) for name in ("replicas", "assignment", "disks"))
        return skew(replicas, assignment, disks, self.made("model"))

    def forecast(self, limits: ForecastLimits | None = None) -> DataFrame:
        from restow.pipeline.jobs.forecast import ForecastLimits, forecast

        return forecast(
            self.samples("disks"),
            self.made("rates"),
            self.newest("assignment"),
            limits or ForecastLimits(),
        )

    def alerts(self) -> DataFrame:
        from restow.pipeline.jobs.alerts import alerts

        return alerts(
            self.newest("assignment"),
            self.newest("disks"),
            *(self.made(name) for name in ("model", "skew", "forecast")),
        )

    def alerts_told(self, most: int = 20) -> tuple[str, ...]:
        """Return what the first alerts of the lake say, the most severe first."""
        from restow.pipeline.jobs.alerts import most_severe_first

        rows = most_severe_first(self.made("alerts")).limit(most).collect()
        return tuple(f"{row['cluster']}: {row['says']}" for row in rows)

    def need(self, name: str) -> None:
        """Raise an error if no job has written this table yet."""
        if self.made(name).isEmpty():
            raise InvalidInput(
                f"the lake {self.lake.path!r} has no {name} of these clusters: `restow pipeline run` makes it"
            )

    def run(self, windows: Windows | None = None, limits: ForecastLimits | None = None) -> Iterator[str]:
        """Compute rates and what is made of them; yield the name of each table when it is written."""
        from restow.pipeline.keeping.commit import KeptTables

        self.check_samples()
        if not any(each.usable for each in self.checked if each.table == "assignment"):
            self.check()
        if self.lake.is_in_folders:
            KeptTables(self.lake).forget()
        self.keep("rates", self.rates(windows))
        yield "rates"
        yield from self.derive(limits)

    def derive(self, limits: ForecastLimits | None = None) -> Iterator[str]:
        """Compute model, skew, forecast and alerts from the rates in the lake, and yield their names."""
        self._recent = None
        for name, make in self.jobs(limits):
            self.keep(name, make())
            yield name

    def jobs(self, limits: ForecastLimits | None = None) -> tuple[tuple[str, Callable[[], DataFrame]], ...]:
        """Return what makes each table from the rates, in order."""
        return (
            ("model", self.model),
            ("skew", self.skew),
            ("forecast", partial(self.forecast, limits)),
            ("alerts", self.alerts),
        )

    def fleet(self, asked: FleetRequest | None = None) -> DataFrame:
        from restow.pipeline.jobs.fleet import fleet

        names = ("assignment", "replicas", "disks")
        assignment, replicas, disks = (self.newest(name, distinct=True) for name in names)
        return fleet(assignment, replicas, disks, self.made("model"), asked)

    def lab(self, assignors: Sequence[str]) -> DataFrame:
        from restow.pipeline.jobs.lab import lab

        return lab(
            self.samples("groups"),
            self.samples("assignment"),
            self.samples("disks"),
            self.samples("offsets"),
            assignors,
        )
