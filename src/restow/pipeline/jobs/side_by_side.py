"""Rates of partitions: the sums of a partition's counters side by side, window by window; in numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restow.pipeline.jobs.counters import COMMIT, END, NULL, SIZE, coded, combined, summed
from restow.pipeline.schemas import AT

if TYPE_CHECKING:
    from restow.pipeline.jobs.counters import Sums
    from restow.plan.search.problem import Bools, Floats, Ints

_MOST = np.iinfo(np.int64).max


def rates_of(readings: Any, gap_s: float, window_s: int) -> dict[str, Any]:
    """Return the columns of the table `rates` for all readings of some partitions, as Arrow arrays."""
    import pyarrow as pa

    wide = _Wide(summed(readings, gap_s, window_s))
    made: dict[str, Any] = {name: _names(readings, name, wide.row) for name in ("cluster", "topic")}
    made["partition"] = readings.column("partition").take(pa.array(wide.row)).combine_chunks()
    made[AT] = pa.array(wide.start_us, pa.timestamp("us", "UTC"))
    made["seconds"] = pa.array(np.nan_to_num(wide.seconds))
    made["samples"] = pa.array(wide.samples)
    made["size"] = pa.array(wide.size, mask=wide.size == NULL)
    for name, rate in _rates(wide).items():
        made[name] = pa.array(rate, mask=np.isnan(rate))
    return made


class _Wide:
    """One value per partition and window. Unknown numbers are NaN."""

    def __init__(self, sums: Sums) -> None:
        order = np.argsort(combined(sums.partition, sums.start_us))
        partition, start, kind = sums.partition[order], sums.start_us[order], sums.kind[order]
        first = np.flatnonzero(_changes(partition, start))
        self._order, self._first, self._kind = order, first, kind
        self.row = sums.row[order][first]
        self.start_us = start[first]
        counted = np.where(kind != COMMIT, sums.samples[order], 0)
        self.samples = np.add.reduceat(counted, first)
        self.seconds = np.fmax.reduceat(np.where(kind != COMMIT, sums.seconds[order], np.nan), first)
        self.size: Ints = np.maximum.reduceat(np.where(kind == SIZE, sums.last[order], NULL), first)
        self.swelling = self._of(SIZE, sums.speed)
        self.level = self._of(SIZE, sums.level)
        self.messages_in = self._of(END, sums.speed)
        self.depth = self._of(END, sums.depth)
        self.trimmed: Bools = np.logical_or.reduceat(sums.trimmed[order] & (kind == END), first)
        self.followers = self._of(SIZE, sums.followers)
        groups = np.add.reduceat(kind == COMMIT, first, dtype=np.int64)
        read = np.where(kind == COMMIT, sums.speed[order], 0.0)
        self.messages_out = np.where(groups > 0, np.add.reduceat(read, first), np.nan)
        self.consumed = _between_commits(partition[first], self.start_us, groups > 0)

    def _of(self, kind: int, values: Floats) -> Floats:
        """Return the value of the only counter of this kind."""
        found: Floats = np.fmax.reduceat(
            np.where(self._kind == kind, values[self._order], np.nan), self._first
        )
        return found


def _between_commits(partition: Ints, start: Ints, committed: Bools) -> Bools:
    """Return which windows lie between the first and the last commit of their partition."""
    changes = _changes(partition)
    first = np.flatnonzero(changes)
    each = np.cumsum(changes) - 1
    begins = np.minimum.reduceat(np.where(committed, start, _MOST), first)
    ends = np.maximum.reduceat(np.where(committed, start, NULL), first)
    found: Bools = (start >= begins[each]) & (start <= ends[each])
    return found


def _rates(wide: _Wide) -> dict[str, Floats]:
    """Return the rates from the sums of windows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        message = np.where(wide.depth > 0, wide.level / wide.depth, np.nan)
    by_messages = np.where(wide.messages_in == 0, 0.0, wide.messages_in * message)
    by_size = np.where(wide.trimmed, np.nan, wide.swelling)
    bytes_in = _first_known(by_size, by_messages, wide.swelling)
    with np.errstate(divide="ignore", invalid="ignore"):
        written = bytes_in / wide.messages_in
    fetched = np.where((wide.messages_in > 0) & (written > 0), written, message)
    consumed = np.where(wide.messages_out == 0, 0.0, wide.messages_out * fetched)
    replicated = bytes_in * wide.followers
    return {
        "messages_in": wide.messages_in,
        "bytes_in": bytes_in,
        "bytes_consumed": consumed,
        "bytes_replicated": replicated,
        "bytes_out": replicated + np.where(wide.consumed, consumed, 0.0),
    }


def _first_known(*values: Floats) -> Floats:
    found = values[0]
    for each in values[1:]:
        found = np.where(np.isnan(found), each, found)
    return found


def _changes(*columns: Ints) -> Bools:
    """Return which rows differ from the row before in these columns."""
    found = np.ones(len(columns[0]), dtype=bool)
    found[1:] = False
    for each in columns:
        found[1:] |= each[1:] != each[:-1]
    return found


def _names(readings: Any, name: str, rows: Ints) -> Any:
    import pyarrow as pa

    codes, names = coded(readings, name)
    return names.take(pa.array(codes[rows]))
