"""How every benchmark measures and prints: a table for people, or one JSON object a line with `--json`."""

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
    """One comparison: the same work done by us and by a peer, in the same unit, smaller being better."""

    name: str
    ours: float
    peer: float
    peer_name: str
    unit: str = "ms"
    target: float | None = None
    """The largest ratio we want to see, if there is a promise about it."""

    @property
    def ratio(self) -> float:
        """Ours over the peer's; NaN if the peer's value is zero, because then it says nothing."""
        return self.ours / self.peer if self.peer else math.nan

    @property
    def met(self) -> bool | None:
        """Whether the promise was kept in this run, or None if there is none."""
        return None if self.target is None else self.ratio <= self.target


def best_of(runs: int, work: Callable[[], object], *, warm_up: int = 1) -> float:
    """The shortest of `runs` in milliseconds, after `warm_up` that do not count.

    The shortest, because everything that disturbs a run makes it longer. Old garbage is cleared first; from
    then on the collector works as it does for any caller.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}")
    for _ in range(warm_up):
        work()
    gc.collect()
    return min(_one_run_ms(work) for _ in range(runs))


def _one_run_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    answer = work()
    ended = time.perf_counter_ns()
    del answer  # throwing it away is not part of the work
    return (ended - started) / 1e6


def command_line(description: str) -> argparse.ArgumentParser:
    """What every benchmark's command line knows; some add to it."""
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


def as_record(row: Row) -> dict[str, str | float | None]:
    """A row as JSON has it; a ratio that says nothing is null."""
    return {
        "name": row.name,
        "ours": round(row.ours, 3),
        "peer": round(row.peer, 3),
        "ratio": None if math.isnan(row.ratio) else round(row.ratio, 4),
        "unit": row.unit,
        "target": row.target,
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
            f"{row.peer:,.2f} {row.unit}",
            f"[{colour}]{row.ratio:.3f}[/]",
            "–" if row.target is None else f"≤ {row.target:g}",
        )
    return table
