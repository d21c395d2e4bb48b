"""Parts of pictures: marks, bars, ranges, and shortened texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.text import Text

T = TypeVar("T")

DEFAULT_ROWS = 24


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The marks of a picture; a terminal without UTF-8 gets ASCII ones."""

    leader: str
    follower: str
    nothing: str
    gained: str
    bar: str
    dots: str
    times: str


PRETTY = Glyphs(leader="●", follower="○", nothing="·", gained="◆", bar="█▏▎▍▌▋▊▉", dots="…", times="×")
PLAIN = Glyphs(leader="#", follower="o", nothing=".", gained="+", bar="#", dots="...", times="x")


def glyphs(console: Console) -> Glyphs:
    return PRETTY if console.encoding.replace("-", "").startswith("utf") else PLAIN


def bar(value: int, maximum: int, width: int, marks: Glyphs) -> str:
    """Return a bar of at most `width` cells; in eighths of a cell where the marks allow it."""
    if maximum <= 0 or value <= 0:
        return ""
    full, parts = marks.bar[0], marks.bar[1:]
    eighths = max(1, round(value * width * 8 / maximum))
    whole, rest = divmod(eighths, 8)
    if not parts:
        return full * max(1, whole)
    return full * whole + (parts[rest - 1] if rest else "")


def ranges(numbers: Iterable[int], most: int = 0) -> str:
    """Return numbers as `0-3,7`, ascending. After `most` ranges, count the rest."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = runs[:most] if most else runs
    left_out = sum(high - low + 1 for low, high in runs[len(shown) :])
    text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in shown)
    return f"{text} and {left_out:,} more" if left_out else text


def middle_out(total: int, rows: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return which of `total` rows to show: if there are more than `rows`, the first and the last.

    `rows` = 0 shows everything.
    """
    if rows <= 0 or total <= rows:
        return range(total), range(0)
    tail = rows // 3
    return range(rows - tail), range(total - tail, total)


def ends_of(items: Sequence[T], rows: int) -> list[T]:
    """Return the first and the last items, if there are more than `rows`."""
    return [items[number] for part in middle_out(len(items), rows) for number in part]


def cut(text: str, width: int, marks: Glyphs) -> str:
    """Cut a text to `width` cells, in the middle, because names differ at their ends."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    room = min(width, len(text)) - len(marks.dots)
    if room < 2:
        return text[:width]
    while True:
        tail = room // 2
        found = text[: room - tail] + marks.dots + text[len(text) - tail :]
        if cell_len(found) <= width or room <= 2:
            return found
        room -= 1


def clean(text: str) -> str:
    """Remove escape sequences and line breaks from a foreign text, so that it cannot steer the terminal."""
    return text if text.isprintable() else "".join(map(_printable, text))


def clean_lines(text: str) -> str:
    """Clean a text, but keep line breaks and tabs."""
    return text if text.isprintable() else "".join(c if c in "\n\t" else _printable(c) for c in text)


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def is_pipe(console: Console) -> bool:
    """Return whether the output has no width limit (`frame.console` decides)."""
    return console.soft_wrap


def put(console: Console, line: Text | str = "", style: str | None = None) -> None:
    """Print a sentence, wrapped at the terminal's edge and never cut."""
    console.print(clean(line) if isinstance(line, str) else line, style=style)


def put_picture(console: Console, line: Text | str, style: str | None = None) -> None:
    """Print a line of a picture, cut at the terminal's edge and never wrapped."""
    console.print(line, style=style, no_wrap=True, overflow="ellipsis", crop=True)


def heading(console: Console, text: str) -> None:
    put(console)
    put(console, text, style="bold")
