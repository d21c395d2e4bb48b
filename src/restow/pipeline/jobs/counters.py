"""The growth of counters between samples, where it is known, summed by window; in numpy.

Sizes, log end offsets and commits are counters: they grow, and sometimes fall, because a log was deleted,
truncated, recreated or reset. The growth during such an interval is unknown, so it does not count. The
intervals beside it do not count either: if a clock was set back, the samples of two periods alternate. A fall
over a gap says nothing about the intervals beside it, so that no sample changes anything beyond two gaps.

A worker gets all readings of some partitions at once, sorts them and computes with whole columns. That takes
a fraction of the time of Spark's windows, which look at one row at a time. Unknown numbers are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.plan.search.problem import Bools, Floats, Ints

SIZE, END, COMMIT = range(3)
"""The kinds of counters: a partition's size, its log end offset, the commits of one group."""

NULL = np.iinfo(np.int64).min
_MOST_KEYS = 2**62


@dataclass(slots=True, kw_only=True)
class Sums:
    """One value per counter and window, in order of partition, kind, name and time."""

    row: Ints
    """A reading of this counter and window: its number in the table."""
    partition: Ints
    kind: Ints
    start_us: Ints
    speed: Floats
    """Growth per second."""
    seconds: Floats
    """The time for which the growth is known."""
    samples: Ints
    last: Ints
    level: Floats
    """The mean value."""
    depth: Floats
    """The mean distance from the floor."""
    trimmed: Bools
    """Whether the floor rose in an interval that counts."""
    followers: Floats


def summed(readings: Any, gap_s: float, window_s: int) -> Sums:
    """Return the sums of an Arrow table of readings. A repeated reading counts once.

    A reading has cluster, topic and partition, kind and name of its counter, `at_us` and `value`; `guard`
    (another guard is another object of that name: a recreated topic, another leader); `floor` (records below
    it are deleted), `epoch` and `followers`, which may be null. If `floor` or `epoch` falls, the object was
    recreated.

    The growth since the reading before belongs to the window of a reading. It is unknown if the interval is
    longer than `gap_s`.
    """
    partition, series = _keys(readings)
    at, value = _ints(readings, "at_us"), _ints(readings, "value")
    order = _in_order(series, at, value)
    series, at, value = series[order], at[order], value[order]
    again = _like_before(series, at, value)
    if again.any():
        kept = ~again
        order, series, at, value = order[kept], series[kept], at[kept], value[kept]
    floor, epoch = (_ints_or_none(readings, name, order) for name in ("floor", "epoch"))
    same = _like_before(series)
    counts = _counting(same, at, value, _ints(readings, "guard")[order], (floor, epoch), int(gap_s * 1e6))
    start = at - at % (window_s * 1_000_000)
    first = np.flatnonzero(~_like_before(series, start))
    rows = order[first]
    samples = np.diff(first, append=len(order))
    grown_by, elapsed_us = _differences(value, counts), _differences(at, counts)
    seconds = np.where(np.add.reduceat(counts, first, dtype=np.int64) > 0, 0.0, np.nan)
    seconds += np.add.reduceat(elapsed_us, first) / 1e6
    return Sums(
        row=rows,
        partition=partition[rows],
        kind=_ints(readings, "kind")[rows],
        start_us=start[first],
        speed=np.add.reduceat(grown_by, first) / seconds,
        seconds=seconds,
        samples=samples,
        last=value[first + samples - 1],
        level=np.add.reduceat(value.astype(np.float64), first) / samples,
        depth=_mean_depth(value, floor, first),
        trimmed=_trimmed(counts, floor, first),
        followers=np.fmax.reduceat(_floats(readings, "followers")[order], first),
    )


def _in_order(series: Ints, at: Ints, value: Ints) -> Ints:
    """Return the order by series, time and value. One number for the first two is sorted fastest."""
    key = combined(series, at)
    order = np.argsort(key)
    if _like_before(key[order]).any():
        order = np.lexsort((value, key))
    return order


def _counting(
    same: Bools, at: Ints, value: Ints, guard: Ints, never_fall: Sequence[Ints | None], gap_us: int
) -> Bools:
    """Return which readings count with their growth since the reading before."""
    counts = same.copy()
    counted = counts[1:]
    elapsed = np.diff(at)
    counted &= (elapsed > 0) & (elapsed <= gap_us) & (guard[1:] == guard[:-1])
    not_fallen = np.ones(len(value), dtype=bool)
    not_fallen[1:] = (value[1:] >= value[:-1]) | (elapsed > gap_us) | ~same[1:]
    counted &= not_fallen[1:] & not_fallen[:-1]
    counted[:-1] &= not_fallen[2:]
    for each in never_fall:
        if each is not None:
            counted &= (each[1:] >= each[:-1]) | (each[1:] == NULL)
    return counts


def _differences(values: Ints, counts: Bools) -> Ints:
    """Return what each reading has more than the one before, or 0 where it does not count."""
    found = np.zeros(len(values), dtype=np.int64)
    np.subtract(values[1:], values[:-1], out=found[1:], where=counts[1:])
    return found


def _mean_depth(value: Ints, floor: Ints | None, first: Ints) -> Floats:
    if floor is None:
        return np.full(len(first), np.nan)
    known = floor != NULL
    depth = np.where(known, value - floor, 0).astype(np.float64)
    count = np.add.reduceat(known, first, dtype=np.int64)
    found = np.full(len(first), np.nan)
    np.divide(np.add.reduceat(depth, first), count, out=found, where=count > 0)
    return found


def _trimmed(counts: Bools, floor: Ints | None, first: Ints) -> Bools:
    if floor is None:
        return np.zeros(len(first), dtype=bool)
    rose = counts.copy()
    rose[1:] &= (floor[1:] > floor[:-1]) & (floor[:-1] != NULL)
    found: Bools = np.logical_or.reduceat(rose, first)
    return found


def _keys(readings: Any) -> tuple[Ints, Ints]:
    """Return numbers for partitions and for series: equal numbers, equal names."""
    names = [coded(readings, name)[0] for name in ("cluster", "topic")]
    partition = combined(*names, _ints(readings, "partition"))
    return partition, combined(partition, _ints(readings, "kind"), coded(readings, "name")[0])


def coded(table: Any, name: str) -> tuple[Ints, Any]:
    """Return a column of strings as numbers, and the strings that they stand for."""
    found = table.column(name).combine_chunks().dictionary_encode()
    return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), found.dictionary


def combined(*keys: Ints) -> Ints:
    """Return one number for each combination of numbers, in their order."""
    whole, size = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        each = key - key.min()
        count = int(each.max()) + 1
        if size * count > _MOST_KEYS:
            whole, each = _ranks(whole), _ranks(each)
            size, count = int(whole.max()) + 1, int(each.max()) + 1
        whole = whole * count + each
        size *= count
    return whole


def _ranks(numbers: Ints) -> Ints:
    found: Ints = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return found


def _like_before(*columns: Ints) -> Bools:
    """Return which rows equal the row before in these columns."""
    same = np.zeros(len(columns[0]), dtype=bool)
    same[1:] = True
    for each in columns:
        same[1:] &= each[1:] == each[:-1]
    return same


def _ints(table: Any, name: str) -> Ints:
    found: Ints = table.column(name).to_numpy().astype(np.int64, copy=False)
    return found


def _floats(table: Any, name: str) -> Floats:
    found: Floats = table.column(name).cast("float64").to_numpy()
    return found


def _ints_or_none(table: Any, name: str, order: Ints) -> Ints | None:
    """Return a column with its nulls as the least number, or None if it has nothing else."""
    column = table.column(name)
    if column.null_count == len(column):
        return None
    found: Ints = column.cast("int64").fill_null(int(NULL)).to_numpy()[order]
    return found
