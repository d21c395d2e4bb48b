"""Rows as a table in a terminal: each column knows its heading and how its values are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from restow.cli.drawing import clean
from restow.cli.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from rich.console import Console

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows: what stands above it, and what becomes of a value."""

    name: str
    heading: str
    written: Callable[[Any], str]
    left: bool = False


def word(value: object) -> str:
    return clean(str(value))


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def share(value: float) -> str:
    return f"{value:.0%}"


def size(value: float) -> str:
    return human_bytes(value)


def rate(value: float) -> str:
    return f"{human_bytes(value)}/s"


def moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%d %H:%M")


def draw_rows(console: Console, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """What is not known is a dash. A cluster that all rows are of is named once, above them.

    Where there is little room, words in the last column take several lines.
    """
    from rich.table import Table

    clusters = {row.get("cluster") for row in rows}
    if len(clusters) == 1 and None not in clusters:
        console.print(f"cluster {word(clusters.pop())}", style="bold")
        columns = [column for column in columns if column.name != "cluster"]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        words = column.left and column is columns[-1]
        table.add_column(column.heading, justify="left" if column.left else "right", no_wrap=not words)
    for row in rows:
        values = (row[column.name] for column in columns)
        table.add_row(
            *(
                NOTHING if value is None else column.written(value)
                for column, value in zip(columns, values, strict=True)
            )
        )
    console.print(table)
