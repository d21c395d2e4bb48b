"""The tables of one round: what of them has to be computed, and how."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.pipeline.answers import ANSWERING, newest_answers
from restow.pipeline.expectations import Expected, check, usable
from restow.pipeline.jobs.hours import REACHED, by_hour, reached_by_day
from restow.pipeline.jobs.leadership import has_few_runs, joinable, runs_of
from restow.pipeline.jobs.rates import TABLE as RATES
from restow.pipeline.jobs.rates import rates_beside
from restow.pipeline.jobs.weeks import HOURS
from restow.pipeline.keeping.record import begin_us, cluster_of, day_of
from restow.pipeline.keeping.since import (
    COMMITS,
    TURNS,
    consumed_otherwise,
    earliest,
    first_commits,
    least,
    led_otherwise,
)
from restow.pipeline.schemas import ASSIGNMENT, AT, CLUSTER, GROUPS, OFFSETS, REPLICAS, SAMPLED
from restow.pipeline.session import is_small

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from restow.pipeline.answers import Answers
    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.keeping.commit import KeptTables
    from restow.pipeline.keeping.record import FileChanges, Folders, RatesRecord
    from restow.pipeline.keeping.since import Since
    from restow.pipeline.lake import Lake
    from restow.pipeline.schemas import Table

_DAY_US = 86_400_000_000
_RATED = (REPLICAS, ASSIGNMENT, OFFSETS, GROUPS)
"""The samples that rates are made of."""
_SAMPLES = {TURNS.name: ASSIGNMENT, COMMITS.name: GROUPS}
Emptied = list[tuple["Table", str]]
"""Folders of tables that have no rows any more."""


class Making:
    """Stages the tables of one commit. Without a record, nothing that is in place counts."""

    def __init__(
        self,
        kept: KeptTables,
        lake: Lake,
        windows: Windows,
        files: Mapping[str, Folders],
        found: Mapping[str, FileChanges],
        before: RatesRecord | None,
    ) -> None:
        self.staged = kept.staged()
        self._kept, self._lake, self._windows = kept, lake, windows
        self._now, self._found, self._record = files, found, before
        self._whole = before is None
        self._gap_us = int(windows.gap_s * 1e6)
        self.checked: Checked | None = None
        """What was found in the rates that were staged."""

    def stage_days(self, about: Table, job: Callable[[DataFrame], DataFrame]) -> Emptied:
        """Write the days of turns or commits whose samples have changed."""
        samples = _SAMPLES[about.name]
        touched = self._found[samples.name].folders
        there = self._now.get(samples.name, {})
        days = {folder: there[folder] for folder in touched if folder in there}
        if days:
            rows = job(usable(self._lake.in_folders().rows_in(samples, *self._files(samples, days)), samples))
            self._lake.write_aside(rows, about, self.staged.home(about))
        written = self._kept.folders_staged(about, self.staged)
        return [(about, folder) for folder in touched & self._before(about).keys() if folder not in written]

    def since(self) -> Since:
        """Return from when on each cluster's rates may differ; clusters without new samples are not in it."""
        folders = {folder for about in _RATED for folder in self._found[about.name].folders}
        if self._whole:
            return dict.fromkeys(sorted(map(cluster_of, folders)), 0)
        added = [rows for about, rows in self.added() if about in _RATED]
        lost = [folder for about in _RATED for folder in self._found[about.name].lost]
        since = least(earliest(added), *({cluster_of(folder): begin_us(day_of(folder))} for folder in lost))
        if self._found[ASSIGNMENT.name].folders:
            replicas = partial(self._rows, REPLICAS, dict.fromkeys(since, 0), before=since)
            since = least(since, led_otherwise(self._rows_before(TURNS), self._rows_now(TURNS), replicas))
        since = {name: us - self._gap_us for name, us in since.items()}
        if self._found[GROUPS.name].folders:
            other = consumed_otherwise(self._rows_before(COMMITS), self._rows_now(COMMITS), self._windows)
            since = least(since, other)
        window_us = self._windows.seconds * 1_000_000
        return {name: us - us % window_us for name, us in since.items()}

    def added(self) -> list[tuple[Table, DataFrame]]:
        """Return the new samples of each table that has any."""
        return [
            (about, self._lake.in_folders().rows_in(about, *self._files(about, new)))
            for about in SAMPLED
            if (new := self._found[about.name].added)
        ]

    def answers(self) -> dict[str, Answers]:
        """Return the newest answers in all samples; only tables that have lost files are read whole."""
        known = {} if self._record is None else self._record.answers
        found = {}
        for about in SAMPLED:
            changed = self._found[about.name]
            if about.name in ANSWERING and changed.folders:
                files = self._now.get(about.name, {}) if changed.lost else changed.added
                rows = self._lake.in_folders().rows_in(about, *self._files(about, files))
                found[about.name] = usable(rows, about)
        newest = newest_answers(found)
        for name in ANSWERING:
            if not self._found[name].lost:
                old, new = known.get(name, {}), newest.get(name, {})
                newest[name] = old | {by: max(us, old.get(by, us)) for by, us in new.items()}
        return newest

    def stage_rates(self, since: Since) -> Emptied:
        """Write the rates from then on, and those of the same day before; and what is made of these days."""
        if not since:
            return []
        read = {name: us - 2 * self._gap_us for name, us in since.items()}
        commits = first_commits(self._rows_now(COMMITS))
        replicas, offsets, groups = (
            _from(self._rows(about, read), read) for about in (REPLICAS, OFFSETS, GROUPS)
        )
        turns = _of(self._rows_now(TURNS), since)
        runs = joinable(runs_of(turns), few=is_small(self._lake.path) or has_few_runs(turns))
        rows = rates_beside(
            runs,
            replicas,
            offsets,
            groups,
            self._windows,
            _before(commits, read),
        )
        if not self._whole:
            same_day = {
                folder: names
                for folder, names in _of_clusters(self._kept.folders(RATES), since).items()
                if begin_us(day_of(folder)) == _begin_of_day(since[cluster_of(folder)])
            }
            rows = _from(rows, since).unionByName(_before(self._kept.rows(RATES, same_day), since))
        expected = Expected(rows, RATES)
        self._lake.write_aside(expected.rows, RATES, self.staged.home(RATES))
        good = self._kept.rows(RATES, self._kept.folders_staged(RATES, self.staged), self.staged)
        self.checked = expected.checked() or check([(good, RATES)])[0]
        self._lake.write_aside(by_hour(good), HOURS, self.staged.home(HOURS))
        most = reached_by_day(good, runs, self._windows)
        self._lake.write_aside(most, REACHED, self.staged.home(REACHED))
        return [(about, folder) for about in (RATES, HOURS, REACHED) for folder in self._gone(about, since)]

    def _gone(self, about: Table, since: Since) -> list[str]:
        """Return the folders in place, of days from then on, that have not been written anew."""
        in_place = {} if self._whole else _of_clusters(self._kept.folders(about), since)
        return [
            folder
            for folder in in_place.keys() - self._kept.folders_staged(about, self.staged).keys()
            if begin_us(day_of(folder)) >= _begin_of_day(since[cluster_of(folder)])
        ]

    def _before(self, about: Table) -> Folders:
        return {} if self._whole else self._kept.folders(about)

    def _rows_before(self, about: Table) -> DataFrame:
        return self._kept.rows(about, self._before(about))

    def _rows_now(self, about: Table) -> DataFrame:
        """Return the rows of turns or commits as they will be after the commit."""
        touched = self._found[_SAMPLES[about.name].name].folders
        stay = {folder: names for folder, names in self._before(about).items() if folder not in touched}
        made = self._kept.folders_staged(about, self.staged)
        return self._kept.rows(about, stay).unionByName(self._kept.rows(about, made, self.staged))

    def _rows(self, about: Table, read: Mapping[str, int], before: Since | None = None) -> DataFrame:
        """Return the samples of the days since then, and before the end of another day."""
        days = {
            folder: names
            for folder, names in _of_clusters(self._now.get(about.name, {}), read).items()
            if begin_us(day_of(folder)) + _DAY_US > read[cluster_of(folder)]
            and (before is None or begin_us(day_of(folder)) <= before[cluster_of(folder)])
        }
        return usable(self._lake.in_folders().rows_in(about, *self._files(about, days)), about)

    def _files(self, about: Table, folders: Folders) -> tuple[str, list[str]]:
        home = self._kept.home_in_lake(about)
        return home, [f"{home}/{folder}/{name}" for folder, names in folders.items() for name in names]


def _of_clusters(folders: Folders, clusters: Mapping[str, int]) -> Folders:
    return {folder: names for folder, names in folders.items() if cluster_of(folder) in clusters}


def _begin_of_day(us: int) -> int:
    return us - us % _DAY_US


def _beside(rows: DataFrame, times: Mapping[str, int]) -> DataFrame:
    """Return the rows of these clusters, each with the time of its cluster."""
    small = rows.sparkSession.createDataFrame(list(times.items()), f"{CLUSTER} string, of_cluster bigint")
    return rows.join(f.broadcast(small), CLUSTER)


def _of(rows: DataFrame, times: Mapping[str, int]) -> DataFrame:
    return _beside(rows, times).drop("of_cluster")


def _from(rows: DataFrame, times: Mapping[str, int]) -> DataFrame:
    """Return the rows of these clusters from then on."""
    return _beside(rows, times).where(f.unix_micros(AT) >= f.col("of_cluster")).select(*rows.columns)


def _before(rows: DataFrame, times: Mapping[str, int]) -> DataFrame:
    """Return the rows of these clusters before that time."""
    return _beside(rows, times).where(f.unix_micros(AT) < f.col("of_cluster")).select(*rows.columns)
