"""Rates of partitions summed up by hour, and hours to one week for each partition; in numpy.

    rates ─► hours of each partition ─► hours of the week ─► one row per partition

A worker gets all rates, or all hours, of some partitions. Each step adds up in order of time: the result does
not depend on the order in which rows arrive, nor on whether the hours were kept meanwhile. Unknown numbers
are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.model.load import WEEK_HOURS
from restow.pipeline.jobs.counters import NULL, coded, combined
from restow.pipeline.schemas import AT, CLUSTER, Table, columns

if TYPE_CHECKING:
    from restow.plan.search.problem import Bools, Floats, Ints

MEANS, PEAKS = ("messages_in", "bytes_in", "bytes_out"), ("bytes_in", "bytes_out")
READ = (CLUSTER, "topic", "partition", AT, "seconds", "samples", "size", *MEANS)
"""The columns of rates that hours are made of."""
_LINE = ("sizes", "x", "y", "xx", "xy")
HOURS = Table(
    name="hours",
    key=(CLUSTER, "topic", "partition", AT),
    sampled=False,
    daily=True,
    columns=columns(
        "cluster string, topic string, partition int, at timestamp, last timestamp",
        "seconds double, samples bigint, size bigint?",
        *(f"{name}_sum double, {name}_seconds double" for name in MEANS),
        *(f"{name}_peak double?" for name in PEAKS),
        *(f"{name} double" for name in _LINE),
    ),
)
"""All that the load model needs of an hour of a partition: its first window is at `at`, its last at `last`.

`NAME_sum` is the rate times the seconds for which it is known, `size` the newest. The other columns are sums
for a straight line through the sizes, by days since `_ORIGIN_US`."""

_HOUR_US = 3_600_000_000
_DAY_US = 86_400_000_000
_ORIGIN_US = 1_767_225_600_000_000
"""The beginning of 2026. Times count from here, because squares of larger numbers would lose precision."""
MONDAY_H = 72
"""The hour of the week in which 1970 began: Thursday, midnight."""
_BUSIEST = 0.95
_LEAST_SPREAD = 1e-9


def hours_of(rates: Any) -> dict[str, Any]:
    """Return the columns of `HOURS` for all rates of some partitions, as Arrow arrays."""
    import pyarrow as pa

    windows = _InTime(rates)
    first = _beginnings(windows.partition, windows.at_us // _HOUR_US)
    seconds, size = windows.column("seconds"), windows.column("size")
    is_known = size != NULL
    day, height = (windows.at_us - _ORIGIN_US) / _DAY_US, size.astype(np.float64)
    made = windows.names(first, CLUSTER, "topic", "partition")
    made[AT] = pa.array(windows.at_us[first], pa.timestamp("us", "UTC"))
    made["last"] = pa.array(windows.at_us[_ends(first, len(size))], pa.timestamp("us", "UTC"))
    made["seconds"] = pa.array(np.add.reduceat(seconds, first))
    made["samples"] = pa.array(np.add.reduceat(windows.column("samples"), first))
    newest = _newest(size, first)
    made["size"] = pa.array(newest, mask=newest == NULL)
    for name in MEANS:
        rate = windows.column(name)
        known = ~np.isnan(rate)
        made[f"{name}_sum"] = pa.array(np.add.reduceat(np.where(known, rate * seconds, 0.0), first))
        made[f"{name}_seconds"] = pa.array(np.add.reduceat(np.where(known, seconds, 0.0), first))
        if name in PEAKS:
            peak = np.fmax.reduceat(rate, first)
            made[f"{name}_peak"] = pa.array(peak, mask=np.isnan(peak))
    line = (np.ones(len(size)), day, height, day * day, day * height)
    for name, values in zip(_LINE, line, strict=True):
        made[name] = pa.array(np.add.reduceat(np.where(is_known, values, 0.0), first))
    return made


def weeks_of(hours: Any) -> dict[str, Any]:
    """Return the load model's columns for all hours of some partitions, as Arrow arrays."""
    import pyarrow as pa

    found = _Hours(hours)
    week = _Week(found)
    made = found.names(found.of_partition, CLUSTER, "topic", "partition")
    for name, values in week.columns.items():
        made[name] = pa.array(values, mask=np.isnan(values))
    made["size"] = pa.array(week.size, mask=week.size == NULL)
    made["samples"], made["hours"] = pa.array(week.samples), pa.array(week.hours, pa.int32())
    for name, times_us in (("first", week.first_us), ("last", week.last_us)):
        made[name] = pa.array(times_us, pa.timestamp("us", "UTC"))
    return made


def topic_hours_of(hours: Any) -> dict[str, Any]:
    """Return sums over these partitions by topic and hour of the week, which can be added up.

    `NAME` is the sum of the means of partitions that were seen in the hour, `NAME_usual` that of their means
    over all hours.
    """
    import pyarrow as pa

    found = _Hours(hours)
    slots = _Slots(found)
    owners = found.names(found.of_partition, CLUSTER, "topic")
    topic = combined(*(coded(pa.table(owners), name)[0] for name in owners))
    key = topic[slots.owner] * WEEK_HOURS + slots.of_week
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    row = pa.array(slots.owner[first])
    made: dict[str, Any] = {name: column.take(row) for name, column in owners.items()}
    made["hour"] = pa.array(slots.of_week[first])
    for name in PEAKS:
        means = slots.sums(found.rate(name)).mean()
        usual = slots.table.mean(means)[slots.owner]
        for sum_of, values in ((name, means), (f"{name}_usual", np.where(np.isnan(means), 0.0, usual))):
            made[sum_of] = pa.array(np.bincount(group, np.nan_to_num(values)))
    return made


@dataclass(slots=True)
class _Sums:
    """What is known of one rate in some periods."""

    weighted: Floats
    """Rates times the seconds for which they are known."""
    seconds: Floats
    peak: Floats

    def mean(self) -> Floats:
        found = np.full(len(self.seconds), np.nan)
        np.divide(self.weighted, self.seconds, out=found, where=self.seconds > 0)
        return found


class _InTime:
    """Rows of partitions, in order of partition and time."""

    def __init__(self, rows: Any) -> None:
        names = [coded(rows, name)[0] for name in (CLUSTER, "topic")]
        at = rows.column(AT).cast("int64").to_numpy()
        partition = combined(*names, rows.column("partition").to_numpy().astype(np.int64))
        key = combined(partition, at // 1_000_000)
        self._rows = rows
        self._order: Ints | slice = slice(None) if bool((key[1:] >= key[:-1]).all()) else np.argsort(key)
        self.at_us: Ints = at[self._order]
        self.partition: Ints = partition[self._order]

    def column(self, name: str) -> Any:
        """Return a column in order; nulls are the least number, or NaN."""
        column = self._rows.column(name)
        if str(column.type) == "int64":
            column = column.fill_null(int(NULL))
        return column.to_numpy()[self._order]

    def times_us(self, name: str) -> Ints:
        """Return a column of times in order."""
        found: Ints = self._rows.column(name).cast("int64").to_numpy()[self._order]
        return found

    def names(self, rows: Ints, *names: str) -> dict[str, Any]:
        """Return columns of these rows, which are numbered in order."""
        import pyarrow as pa

        taken = pa.array(np.arange(len(self.at_us))[self._order][rows])
        return {name: self._rows.column(name).take(taken).combine_chunks() for name in names}


class _Hours(_InTime):
    """Hours of partitions, as `HOURS` has them."""

    def __init__(self, hours: Any) -> None:
        super().__init__(hours)
        self.hour = self.at_us // _HOUR_US
        self.of_partition = _beginnings(self.partition)
        self.seconds = self.column("seconds")

    def rate(self, name: str) -> _Sums:
        peak = self.column(f"{name}_peak") if name in PEAKS else np.full(len(self.hour), np.nan)
        return _Sums(self.column(f"{name}_sum"), self.column(f"{name}_seconds"), peak)


class _Slots:
    """The hours of the week in which each partition was seen."""

    def __init__(self, hours: _Hours) -> None:
        new = np.zeros(len(hours.hour), dtype=np.int64)
        new[hours.of_partition[1:]] = 1
        partition = np.cumsum(new)
        of_week = (hours.hour + MONDAY_H) % WEEK_HOURS
        self._order = np.argsort(partition * WEEK_HOURS + of_week, kind="stable")
        self._first = _beginnings(partition[self._order], of_week[self._order])
        self.owner: Ints = partition[self._order][self._first]
        """The number of the partition."""
        self.of_week: Ints = of_week[self._order][self._first]
        place = np.arange(len(self.owner)) - _beginnings(self.owner)[self.owner]
        self.table = _Table(self.owner, place, len(hours.of_partition))

    def sums(self, hours: _Sums) -> _Sums:
        return _Sums(
            self.sum_of(hours.weighted),
            self.sum_of(hours.seconds),
            np.fmax.reduceat(hours.peak[self._order], self._first),
        )

    def sum_of(self, values: Floats) -> Floats:
        found: Floats = np.add.reduceat(values[self._order], self._first)
        return found


class _Week:
    """One row for each partition."""

    def __init__(self, hours: _Hours) -> None:
        slots, first = _Slots(hours), hours.of_partition
        self.columns: dict[str, Floats] = {}
        for name in MEANS:
            sums = slots.sums(hours.rate(name))
            self.columns[f"{name}_mean"] = slots.table.mean(sums.mean())
            if name in PEAKS:
                self.columns[f"{name}_p95"], self.columns[f"{name}_peak"] = slots.table.busiest(sums.peak)
        self.first_us = hours.at_us[first]
        self.last_us = hours.times_us("last")[_ends(first, len(hours.hour))]
        self.size = _newest(hours.column("size"), first)
        self.columns["growth"] = _slope(*(np.add.reduceat(hours.column(name), first) for name in _LINE))
        self.samples = np.add.reduceat(hours.column("samples"), first)
        counted = slots.sum_of(hours.seconds) > 0
        self.hours: Ints = np.bincount(slots.owner[counted], minlength=len(first))
        self.columns["confidence"] = self._confidence(np.add.reduceat(hours.seconds, first))

    def _confidence(self, seconds: Floats) -> Floats:
        span_s = (self.last_us - self.first_us) / 1e6
        share = np.ones(len(span_s))
        np.divide(seconds, span_s, out=share, where=span_s > 0)
        return self.hours / WEEK_HOURS * np.minimum(share, 1.0)


@dataclass(slots=True)
class _Table:
    """A row for each partition, with a cell for each of its hours of the week."""

    owner: Ints
    place: Ints
    rows: int

    def mean(self, values: Floats) -> Floats:
        cells = self._cells(values)
        known = ~np.isnan(cells)
        found = np.full(self.rows, np.nan)
        count = known.sum(axis=1)
        np.divide(np.where(known, cells, 0.0).sum(axis=1), count, out=found, where=count > 0)
        return found

    def busiest(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the value that 95 % of the hours do not exceed, interpolated, and the greatest."""
        cells = np.sort(self._cells(values), axis=1)
        count = (~np.isnan(cells)).sum(axis=1)
        rows, last = np.arange(self.rows), np.maximum(count - 1, 0)
        position = last * _BUSIEST
        below = position.astype(np.int64)
        low, high = cells[rows, below], cells[rows, np.minimum(below + 1, last)]
        return low + (high - low) * (position - below), cells[rows, last]

    def _cells(self, values: Floats) -> Floats:
        cells = np.full((self.rows, int(self.place.max()) + 1), np.nan)
        cells[self.owner, self.place] = values
        return cells


def _newest(size: Ints, first: Ints) -> Ints:
    """Return the last known size of each of these runs of rows."""
    last = np.maximum.reduceat(np.where(size != NULL, np.arange(len(size)), -1), first)
    return np.where(last >= 0, size[last], NULL)


def _ends(first: Ints, rows: int) -> Ints:
    """Return the last rows of runs that begin with these."""
    return np.append(first[1:], rows) - 1


def _slope(count: Floats, x: Floats, y: Floats, xx: Floats, xy: Floats) -> Floats:
    """Return the growth of a straight line; NaN if all its points have one time."""
    found = np.full(len(count), np.nan)
    there = np.maximum(count, 1.0)
    spread = xx - x * x / there
    np.divide(xy - x * y / there, spread, out=found, where=spread > _LEAST_SPREAD)
    return found


def _beginnings(*columns: Ints) -> Ints:
    """Return the rows that differ from the row before in these columns."""
    new: Bools = np.ones(len(columns[0]), dtype=bool)
    new[1:] = False
    for each in columns:
        new[1:] |= each[1:] != each[:-1]
    return np.flatnonzero(new)
