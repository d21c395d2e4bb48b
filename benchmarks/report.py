"""Measure and print for all benchmarks: a table, or one JSON object per line with `--json`."""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison: the same work done by us and by a peer, in the same unit.

    Smaller is better, unless `more_is_better`; then target and limit are the least that will do.
    """

    name: str
    ours: float
    peer: float = math.nan
    """NaN if there is no peer."""
    peer_name: str = "–"
    unit: str = "ms"
    target: float | None = None
    """The largest ratio we want to see, if there is a promise about it."""
    least: float | None = None
    """The smallest ratio we want to see, where too little breaks the promise as too much does."""
    limit: float | None = None
    """The largest value of ours we want to see, whatever the peer's."""
    more_is_better: bool = False

    @property
    def ratio(self) -> float:
        """Return our figure divided by the peer's; NaN if the peer's is zero."""
        return self.ours / self.peer if self.peer else math.nan

    @property
    def met(self) -> bool | None:
        """Return whether this run kept every promise; None if there is none."""
        promises = [(self.ratio, self.target), (self.ours, self.limit)]
        kept = [self._keeps(value, bound) for value, bound in promises if bound is not None]
        kept += [] if self.least is None else [self.ratio >= self.least]
        return all(kept) if kept else None

    def _keeps(self, value: float, bound: float) -> bool:
        return value >= bound if self.more_is_better else value <= bound

    @property
    def promise(self) -> str:
        """Return the promise as a short text."""
        sign = "≥" if self.more_is_better else "≤"
        ratio = [] if self.target is None else [f"{sign} {self.target:.3g}"]
        ratio += [] if self.least is None else [f"≥ {self.least:.3g}"]
        value = [] if self.limit is None else [f"{sign} {self.limit:g} {self.unit}"]
        return ", ".join(ratio + value) or "–"


def best_of(runs: int, work: Callable[[], object], *, warm_up: int = 1) -> float:
    """Return the shortest of `runs` in milliseconds, after `warm_up` runs that do not count.

    The shortest, because everything that disturbs a run makes it longer. Old garbage is cleared first; from
    then on the collector works as it does for any caller.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}")
    for _ in range(warm_up):
        work()
    gc.collect()
    return min(_one_run_ms(work) for _ in range(runs))


def in_turns(runs: int, *works: Callable[[], Callable[[], object]]) -> tuple[float, ...]:
    """Return the shortest run of each in milliseconds. They alternate, so that what else the machine does
    meets all of them. Each is given as a function that makes ready for one run.
    """
    gc.collect()
    times = [[_one_run_ms(ready()) for ready in works] for _ in range(runs)]
    return tuple(min(each) for each in zip(*times, strict=True))


def _one_run_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    answer = work()
    ended = time.perf_counter_ns()
    del answer  # throwing it away is not part of the work
    return (ended - started) / 1e6


def command_line(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    return parser


def wants_json(description: str, arguments: Sequence[str] | None = None) -> bool:
    """Read a command line that knows nothing but `--json`."""
    return bool(command_line(description).parse_args(arguments).json)


def print_rows(title: str, rows: Iterable[Row], *, as_json: bool) -> None:
    """Print what was measured, as a table or as JSON lines."""
    if as_json:
        for row in rows:
            print(json.dumps(as_record(row)))
    else:
        Console().print(_table(title, rows))


def print_each(title: str, rows: Iterable[Row], *, as_json: bool) -> None:
    """Print each row as soon as it is measured, for measurements that take minutes."""
    if not as_json:
        print(f"{title}\n{'what':<62}{'ours':>16}{'peer’s':>16}{'ratio':>9}  target, peer", flush=True)
    for row in rows:
        if as_json:
            print(json.dumps(as_record(row)), flush=True)
            continue
        theirs = "–" if math.isnan(row.peer) else f"{row.peer:,.2f} {row.unit}"
        ratio = "–" if math.isnan(row.ratio) else f"{row.ratio:.4f}"
        mark = {True: "met", False: "MISSED", None: ""}[row.met]
        ours = f"{row.ours:,.4f}" if row.unit == "" else f"{row.ours:,.2f} {row.unit}"
        told = ", ".join(part for part in (row.promise, mark, row.peer_name) if part not in ("", "–"))
        print(f"{row.name:<62}{ours:>16}{theirs:>16}{ratio:>9}  {told}".rstrip(), flush=True)


def as_record(row: Row) -> dict[str, str | float | bool | None]:
    """Return a row for JSON; a figure without meaning is null."""
    return {
        "name": row.name,
        "ours": round(row.ours, 3),
        "peer": None if math.isnan(row.peer) else round(row.peer, 3),
        "ratio": None if math.isnan(row.ratio) else round(row.ratio, 4),
        "unit": row.unit,
        "target": row.target,
        "limit": row.limit,
        "more_is_better": row.more_is_better,
        "met": row.met,
        "peer_name": row.peer_name,
    }


def _table(title: str, rows: Iterable[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("what", "peer"):
        table.add_column(heading, overflow="fold")
    for heading in ("ours", "peer's", "ratio", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        colour = {True: "green", False: "red", None: "default"}[row.met]
        table.add_row(
            row.name,
            row.peer_name,
            f"{row.ours:,.2f} {row.unit}",
            "–" if math.isnan(row.peer) else f"{row.peer:,.2f} {row.unit}",
            f"[{colour}]{'–' if math.isnan(row.ratio) else f'{row.ratio:.3f}'}[/]",
            f"[{colour}]{row.promise}[/]",
        )
    return table
