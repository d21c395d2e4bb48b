"""Rates of partitions summed up to one week for each, hour by hour; in numpy.

A worker gets all rates of some partitions. It sums them by hour, then hours by hour of the week, then a week
by partition, each in order of time: the result does not depend on the order in which rates arrive. Unknown
numbers are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.model.load import WEEK_HOURS
from restow.pipeline.jobs.counters import NULL, coded, combined
from restow.pipeline.schemas import AT

if TYPE_CHECKING:
    from restow.plan.search.problem import Bools, Floats, Ints

MEANS, PEAKS = ("messages_in", "bytes_in", "bytes_out"), ("bytes_in", "bytes_out")
HOUR_S = 3_600
_DAY_US = 86_400_000_000
_ORIGIN_US = 1_767_225_600_000_000
"""The beginning of 2026. Times count from here, because squares of larger numbers would lose precision."""
MONDAY_H = 72
"""The hour of the week in which 1970 began: Thursday, midnight."""
_BUSIEST = 0.95
_LEAST_SPREAD = 1e-9


def weeks_of(rates: Any) -> dict[str, Any]:
    """Return the load model's columns for all rates of some partitions, as Arrow arrays."""
    import pyarrow as pa

    hours = _Hours(rates)
    week = _Week(hours)
    row = pa.array(hours.row[hours.of_partition])
    made: dict[str, Any] = {
        name: rates.column(name).take(row).combine_chunks() for name in ("cluster", "topic", "partition")
    }
    for name, values in week.columns.items():
        made[name] = pa.array(values, mask=np.isnan(values))
    made["size"] = pa.array(week.size, mask=week.size == NULL)
    made["samples"], made["hours"] = pa.array(week.samples), pa.array(week.hours, pa.int32())
    for name, values in (("first", week.first_us), ("last", week.last_us)):
        made[name] = pa.array(values, pa.timestamp("us", "UTC"))
    return made


@dataclass(slots=True)
class _Sums:
    """What is known of one rate in some periods."""

    weighted: Floats
    """Rates times the seconds for which they are known."""
    seconds: Floats
    peak: Floats

    def within(self, order: Ints | slice, first: Ints) -> _Sums:
        return _Sums(
            np.add.reduceat(self.weighted[order], first),
            np.add.reduceat(self.seconds[order], first),
            np.fmax.reduceat(self.peak[order], first),
        )

    def mean(self) -> Floats:
        found = np.full(len(self.seconds), np.nan)
        np.divide(self.weighted, self.seconds, out=found, where=self.seconds > 0)
        return found


class _Hours:
    """The rates of each partition by hour, in order of partition and time."""

    def __init__(self, rates: Any) -> None:
        names = [coded(rates, name)[0] for name in ("cluster", "topic")]
        at = rates.column(AT).cast("int64").to_numpy()
        partition = combined(*names, rates.column("partition").to_numpy().astype(np.int64))
        key = combined(partition, at // 1_000_000)
        order = slice(None) if bool((key[1:] >= key[:-1]).all()) else np.argsort(key)
        at, partition = at[order], partition[order]
        hour = at // (HOUR_S * 1_000_000)
        first = _beginnings(partition, hour)
        last = np.append(first[1:], len(at)) - 1
        self.row = np.arange(len(at))[order][first]
        self.hour = hour[first]
        self.of_partition = _beginnings(partition[first])
        self.first_us, self.last_us = at[first], at[last]
        seconds = rates.column("seconds").to_numpy()[order]
        self.seconds = np.add.reduceat(seconds, first)
        self.samples = np.add.reduceat(rates.column("samples").to_numpy()[order], first)
        self.rates = {name: _sums(_floats(rates, name)[order], seconds, first) for name in MEANS}
        size = rates.column("size").fill_null(int(NULL)).to_numpy()[order]
        known = size != NULL
        newest = np.maximum.reduceat(np.where(known, np.arange(len(at)), -1), first)
        self.size = np.where(newest >= 0, size[newest], NULL)
        day, height = (at - _ORIGIN_US) / _DAY_US, size.astype(np.float64)
        self.line = [
            np.add.reduceat(np.where(known, each, 0.0), first)
            for each in (np.ones(len(at)), day, height, day * day, day * height)
        ]
        """Count, x, y, xx, xy of sizes over days: sums that can be merged, because a regression cannot."""


class _Week:
    """One row for each partition."""

    def __init__(self, hours: _Hours) -> None:
        first = hours.of_partition
        number = np.zeros(len(hours.hour), dtype=np.int64)
        number[first[1:]] = 1
        partition = np.cumsum(number)
        of_week = (hours.hour + MONDAY_H) % WEEK_HOURS
        order = np.argsort(partition * WEEK_HOURS + of_week, kind="stable")
        again = _beginnings(partition[order], of_week[order])
        owner = partition[order][again]
        place = np.arange(len(owner)) - _beginnings(owner)[owner]
        table = _Table(owner, place, len(first))
        self.columns: dict[str, Floats] = {}
        for name in MEANS:
            sums = hours.rates[name].within(order, again)
            self.columns[f"{name}_mean"] = table.mean(sums.mean())
            if name in PEAKS:
                self.columns[f"{name}_p95"], self.columns[f"{name}_peak"] = table.busiest(sums.peak)
        self.columns["growth"] = _slope(*(np.add.reduceat(each, first) for each in hours.line))
        ends = np.append(first[1:], len(partition)) - 1
        self.first_us, self.last_us = hours.first_us[first], hours.last_us[ends]
        newest = np.maximum.reduceat(np.where(hours.size != NULL, np.arange(len(partition)), -1), first)
        self.size: Ints = np.where(newest >= 0, hours.size[newest], NULL)
        self.samples = np.add.reduceat(hours.samples, first)
        counted = np.add.reduceat(hours.seconds[order], again) > 0
        self.hours: Ints = np.bincount(owner[counted], minlength=len(first))
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


def _sums(rate: Floats, seconds: Floats, first: Ints) -> _Sums:
    known = ~np.isnan(rate)
    return _Sums(
        np.add.reduceat(np.where(known, rate * seconds, 0.0), first),
        np.add.reduceat(np.where(known, seconds, 0.0), first),
        np.fmax.reduceat(rate, first),
    )


def _slope(count: Floats, x: Floats, y: Floats, xx: Floats, xy: Floats) -> Floats:
    """Return the growth of a straight line; NaN if all its points have one time."""
    found = np.full(len(count), np.nan)
    there = np.maximum(count, 1.0)
    spread = xx - x * x / there
    np.divide(xy - x * y / there, spread, out=found, where=spread > _LEAST_SPREAD)
    return found


def _floats(table: Any, name: str) -> Floats:
    found: Floats = table.column(name).to_numpy()
    return found


def _beginnings(*columns: Ints) -> Ints:
    """Return the rows that differ from the row before in these columns."""
    new: Bools = np.ones(len(columns[0]), dtype=bool)
    new[1:] = False
    for each in columns:
        new[1:] |= each[1:] != each[:-1]
    return np.flatnonzero(new)
