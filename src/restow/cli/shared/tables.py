"""Tables in a terminal of any width, and in a pipe.

A table never cuts a number. A table that is wider than the terminal shrinks in this order: headings take
several lines, bars go, names lose their middle and words take several lines, and at last every row becomes
lines of `heading: value`. A pipe has no width, so tables do not shrink there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from restow.cli.shared.drawing import clean, cut, glyphs, is_pipe
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

NOTHING = "–"
_GAP = 2
_SHORTEST_NAME = 12
_SHORTEST_WORDS = 20


class ColumnKind(Enum):
    """The kind of a column's content, which decides how it may shrink."""

    NUMBER = "to the right, and never cut"
    LABEL = "a fixed word, never cut"
    NAME = "cut in the middle"
    WORDS = "takes several lines"
    BAR = "left out"


NUMBER, LABEL, NAME, WORDS, BAR = ColumnKind


@dataclass(frozen=True, slots=True)
class _Row:
    cells: tuple[Text, ...]
    style: str


class Grid:
    """A table that rich can print. Cells are strings, which are cleaned, or rich's texts."""

    def __init__(self, *columns: tuple[str, ColumnKind], header: bool = True) -> None:
        self._columns = columns
        self._header = header
        self._rows: list[_Row] = []
        self.caption = ""

    def add_row(self, *cells: str | Text, style: str | None = None) -> None:
        from rich.text import Text

        texts = tuple(Text(clean(cell)) if isinstance(cell, str) else cell for cell in cells)
        if len(texts) != len(self._columns):
            raise ValueError(f"{len(texts)} cells for {len(self._columns)} columns")
        self._rows.append(_Row(texts, style or ""))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        widths = self._widths(None if is_pipe(console) else options.max_width)
        if widths is None:
            yield from self._as_lines(console, options.max_width)
        else:
            yield from self._as_table(console, widths)
        if self.caption:
            yield Text(clean(self.caption), style="dim")

    def _widths(self, room: int | None) -> list[int] | None:
        """Return each column's width, or None if the table cannot fit."""
        data = [max(map(_width, cells), default=0) for cells in self._by_column()]
        headings = [heading if self._header else "" for heading, _ in self._columns]
        whole = [max(width, len(heading)) for width, heading in zip(data, headings, strict=True)]
        if room is None or _total(whole) <= room:
            return whole
        longest = [max(map(len, heading.split()), default=0) for heading in headings]
        narrow = [max(pair) for pair in zip(data, longest, strict=True)]
        if _total(narrow) > room:
            narrow = [
                0 if kind is BAR else width for width, (_, kind) in zip(narrow, self._columns, strict=True)
            ]
        least = [self._least(*each) for each in zip(narrow, longest, self._columns, strict=True)]
        if _total(least) > room:
            return None
        kinds = [kind for _, kind in self._columns]
        while _total(narrow) > room:  # words first, because wrapping loses nothing
            narrow[max(range(len(kinds)), key=lambda at: _slack(kinds[at], narrow[at] - least[at]))] -= 1
        for at, width in enumerate(whole):  # headings get the remaining room, from the left
            if narrow[at]:
                narrow[at] += max(0, min(width - narrow[at], room - _total(narrow)))
        return narrow

    @staticmethod
    def _least(width: int, longest: int, column: tuple[str, ColumnKind]) -> int:
        shortest = {NAME: _SHORTEST_NAME, WORDS: _SHORTEST_WORDS}.get(column[1])
        return width if shortest is None else min(width, max(shortest, longest))

    def _by_column(self) -> Iterable[tuple[Text, ...]]:
        return (
            zip(*(row.cells for row in self._rows), strict=True) if self._rows else ((),) * len(self._columns)
        )

    def _as_table(self, console: Console, widths: list[int]) -> Iterable[Text]:
        from rich.text import Text

        if self._header:
            headings = [Text(heading, style="dim") for heading, _ in self._columns]
            yield from self._lines_of(console, _Row(tuple(headings), ""), widths, is_heading=True)
        for row in self._rows:
            yield from self._lines_of(console, row, widths)

    def _lines_of(
        self, console: Console, row: _Row, widths: list[int], *, is_heading: bool = False
    ) -> Iterable[Text]:
        from rich.text import Text

        drawn = [
            (
                _wrapped(console, cell, width) if is_heading else _fitted(console, cell, width, kind),
                width,
                kind,
            )
            for cell, width, (_, kind) in zip(row.cells, widths, self._columns, strict=True)
            if width
        ]
        for number in range(max((len(lines) for lines, _, _ in drawn), default=1)):
            line = Text(style=row.style, no_wrap=True, overflow="ignore")
            for at, (lines, width, kind) in enumerate(drawn):
                piece = lines[number] if number < len(lines) else Text()
                blank = " " * (width - _width(piece))
                line.append(" " * (_GAP if at else 0))
                line.append_text(Text(blank) + piece if kind is NUMBER else piece + Text(blank))
            line.rstrip()
            yield line

    def _as_lines(self, console: Console, room: int) -> Iterable[Text]:
        """Draw every row as lines of `heading: value`, several to a line where they fit."""
        from rich.text import Text

        for row in self._rows:
            line = Text(style=row.style)
            for (heading, kind), cell in zip(self._columns, row.cells, strict=True):
                if kind is BAR or not cell.plain:
                    continue
                label = Text(f"{heading}: " if heading and self._header else "", style="dim")
                gap = "" if not line.plain else "   " if self._header else " "
                if _width(line) + len(gap) + len(label) + _width(cell) <= room and "\n" not in cell.plain:
                    line.append(gap).append_text(label).append_text(cell)
                    continue
                indent = "  " if line.plain else ""
                if line.plain:
                    yield line
                *above, last = _fitted(console, cell, room - len(indent) - len(label), kind)
                for piece in above:
                    yield Text(indent, style=row.style).append_text(label).append_text(piece)
                    label = Text(" " * len(label))
                line = Text(indent, style=row.style).append_text(label).append_text(last)
            yield line


def _slack(kind: ColumnKind, cells: int) -> tuple[bool, int]:
    return kind is WORDS and cells > 0, cells


def _total(widths: Sequence[int]) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + _GAP * (len(shown) - 1)


def _width(text: Text) -> int:
    """Return the width of the widest line."""
    return max((line.cell_len for line in text.split("\n", allow_blank=True)), default=0)


def _wrapped(console: Console, text: Text, width: int) -> list[Text]:
    lines = list(text.wrap(console, max(width, 1), overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines or [text]


def _fitted(console: Console, text: Text, width: int, kind: ColumnKind) -> list[Text]:
    """Return the lines of a cell. Numbers and labels keep their width."""
    from rich.text import Text

    if kind is WORDS:
        return _wrapped(console, text, width)
    if kind is NAME and text.cell_len > width:
        return [Text(cut(text.plain, width, glyphs(console)), style=text.style)]
    return [text]


@dataclass(frozen=True, slots=True)
class Column:
    """A column for rows that are mappings: its heading, and how to show a value."""

    name: str
    heading: str
    written: Callable[[Any], str]
    left: bool = False
    """A column of words or names. The last column may take several lines, others are cut in the middle."""


def word(value: object) -> str:
    return clean(str(value))


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def share(value: float) -> str:
    return f"{value:.0%}"


def moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%d %H:%M")


def words(name: str, heading: str = "") -> Column:
    """Return a column of words or names; its heading is its name unless one is given, as of all of these."""
    return Column(name, heading or name, word, left=True)


def numbers(name: str, heading: str = "") -> Column:
    return Column(name, heading or name, number)


def sizes(name: str, heading: str = "") -> Column:
    return Column(name, heading or name, human_bytes)


def moments(name: str, heading: str = "") -> Column:
    return Column(name, heading or name, moment)


def draw_rows(console: Console, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows, unknown values as dashes. If all rows are of one cluster, name it once above them."""
    clusters = {row.get("cluster") for row in rows}
    if len(clusters) == 1 and None not in clusters:
        console.print(f"cluster {word(clusters.pop())}", style="bold")
        columns = [column for column in columns if column.name != "cluster"]
    grid = Grid(
        *(
            (column.heading, NUMBER if not column.left else WORDS if column is columns[-1] else NAME)
            for column in columns
        )
    )
    for row in rows:
        values = (row[column.name] for column in columns)
        grid.add_row(
            *(
                NOTHING if value is None else column.written(value)
                for column, value in zip(columns, values, strict=True)
            )
        )
    console.print(grid)
