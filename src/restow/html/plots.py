"""Pictures as SVG text: no script, no external file.

    meter     one value as part of another, in a line of text or a table
    bars      a value per member, beside its share and the band around it
    lines     values over time, with moments marked
    changes   before and after, side by side
    spans     what lasts from when to when
    scatter   points by two values, some of them joined

A page's style (`page.css`) colours all marks by their class. Bars also have a colour of their own, because in
notebooks and in files of their own there is no such style.
Every mark has a title, which browsers show as a tooltip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.html.page import Markup
from restow.sizes import scaled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 760
_WIDEST = 900
_ROW, _BAR = 26, 14
_LABEL, _VALUE, _LETTER = 96, 150, 7
_LINE_COLOURS = 8
_SPAN_ROW, _SPAN_LABEL = 16, 150
_HIGH = 320
_TEXT = "#667"
PLOT_STYLE = f"max-width: {_WIDEST}px"
"""The one style that pictures carry themselves, for places without our style sheet."""
_METER = (120, 10)
_FILLS = {
    "bar before": "#b4bfcd",
    "bar after": "#2f8f7b",
    "bar plain": "#2f8f7b",
    "bar fine": "#2f8f7b",
    "bar much": "#d9663d",
    "bar little": "#5b8fd0",
    "band": "#2f8f7b1f",
}
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@frozen
class Bar:
    """A bar. `share` is its even share; a value of None is unknown."""

    name: str
    value: float | None
    share: float | None = None
    note: str = ""


@frozen
class Line:
    """Points in time, in seconds since 1970, ascending. `kind` is a CSS class; without it colours take turns.

    A point of None is unknown and leaves a gap in the line.
    """

    name: str
    points: tuple[tuple[float, float | None], ...]
    kind: str = ""


@frozen
class Point:
    """A point of a scatter; its name is the tooltip."""

    name: str
    seconds: float
    value: float
    stands_out: bool = False


@frozen
class Span:
    """Something that lasts from one second to another; until None if it never ends."""

    name: str
    begin_s: float
    end_s: float | None
    note: str = ""


@frozen
class Moment:
    """A named point in time."""

    at: float
    name: str
    bad: bool = False


def amount(value: float | None, unit: str = "B") -> str:
    """Return `1.5 MB/s`: three digits, in powers of 1000. A count below a million is written out.

    An amount that is not known is `?`.
    """
    if value is None:
        return "?"
    if not isfinite(value):
        return "–"
    if not unit and abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.2f}"
    return scaled(value, unit)


def meter(value: float, most: float, tip: str, kind: str = "plain") -> Markup:
    """Draw one value as a part of another, with the tip as its text. `kind` is that of a bar."""
    width, height = _METER
    part = min(width * value / most, width) if most > 0 else 0.0
    inner = _rect(f"bar {kind}", 0, 0, max(part, 1.0) if value > 0 else 0.0, height)
    return Markup(
        f"<svg class='meter' viewBox='0 0 {width} {height}' width='{width}' height='{height}' role='img' "
        f"aria-label='{escape(tip)}'>{_title(tip)}<rect class='track' fill='#8883' width='{width}' "
        f"height='{height}'/>{inner}</svg>"
    )


def bars(rows: Sequence[Bar], *, unit: str = "B", band: float = 0.0, label: str = "") -> str:
    """Draw horizontal bars in front of the band, and highlight those outside it."""
    most = max((max(row.value or 0, (row.share or 0) * (1 + band)) for row in rows), default=0) or 1.0
    left = max([_LABEL, *(_LETTER * len(row.name) + 8 for row in rows)])
    parts = []
    for number, row in enumerate(rows):
        top = number * _ROW
        if row.share:
            low, high = (
                _length(row.share * (1 - band), most, left),
                _length(row.share * (1 + band), most, left),
            )
            parts.append(_rect("band", left + low, top, max(high - low, 1.5), _ROW))
        parts.append(_text(left - 8, top + _ROW / 2, row.name, "end"))
        if row.value is None:
            parts.append(_text(left + 8, top + _ROW / 2, "not known"))
            continue
        kind = _judged(row.value, row.share, band)
        tip = f"{row.name}: {amount(row.value, unit)}" + (f", {row.note}" if row.note else "")
        width = _length(row.value, most, left)
        parts.append(_rect(f"bar {kind}", left, top + (_ROW - _BAR) / 2, width, _BAR, tip, 3))
        ratio = f" · {row.value / row.share:.2f} ×" if row.share else ""
        parts.append(_text(left + width + 8, top + _ROW / 2, f"{amount(row.value, unit)}{ratio}"))
    return _svg(WIDTH, len(rows) * _ROW, label, parts)


def _length(value: float, most: float, left: int = _LABEL) -> float:
    """Return the length of a bar, which can be seen if there is anything."""
    return max((WIDTH - left - _VALUE) * value / most, 1) if value > 0 else 0


def _judged(value: float, share: float | None, band: float) -> str:
    if not share:
        return "plain"
    if value > share * (1 + band) * (1 + 1e-9):
        return "much"
    return "little" if value < share * (1 - band) * (1 - 1e-9) else "fine"


def changes(
    rows: Sequence[tuple[str, float | None, float | None]],
    *,
    share: float | None = None,
    label: str = "",
) -> str:
    """Draw before above after, with the even share as a line. An amount that is not known has no bar."""
    most = max((max(before or 0, after or 0) for _, before, after in rows), default=0) or 1.0
    row_height = 30
    parts = []
    for number, (name, before, after) in enumerate(rows):
        top = number * row_height
        for kind, value, below in (("before", before, 5), ("after", after, 15)):
            tip = f"{name} {kind}: {amount(value)}"
            parts.append(_rect(f"bar {kind}", _LABEL, top + below, _length(value or 0, most), 9, tip, 2))
        parts.append(_text(_LABEL - 8, top + row_height / 2, name, "end"))
        end = _LABEL + _length(max(before or 0, after or 0), most) + 8
        parts.append(_text(end, top + row_height / 2, f"{amount(before)} → {amount(after)}"))
    if share:
        at = _LABEL + _length(share, most)
        parts.append(
            f"<line class='share' x1='{at:.1f}' x2='{at:.1f}' y1='0' y2='{len(rows) * row_height}'/>"
        )
    return _svg(WIDTH, len(rows) * row_height, label, parts)


def spans(rows: Sequence[Span], *, label: str = "") -> str:
    """Draw a bar for each span, from top to bottom, over seconds."""
    ends = [row.begin_s if row.end_s is None else row.end_s for row in rows]
    last, room = max([*ends, 0.0]) or 1.0, WIDTH - _SPAN_LABEL - 20
    height = len(rows) * _SPAN_ROW
    parts = []
    pace = next((each for each in _SECONDS if last / each <= 8), ceil(last / 8 / 86400) * 86400)
    for number in range(int(last / pace) + 1):
        at = _SPAN_LABEL + room * number * pace / last
        parts.append(
            f"<line stroke='{_TEXT}' stroke-opacity='.25' x1='{at:.1f}' x2='{at:.1f}' y1='0' y2='{height}'/>"
        )
        parts.append(_text(at, height + 12, f"{number * pace:,} s", "middle"))
    for number, row in enumerate(rows):
        top, end_s = number * _SPAN_ROW, last if row.end_s is None else row.end_s
        left = _SPAN_LABEL + room * row.begin_s / last
        width = max(room * (end_s - row.begin_s) / last, 1.5)
        until = "it never ends" if row.end_s is None else f"to {row.end_s:,.1f} s"
        tip = f"{row.name}: from {row.begin_s:,.1f} s, {until}" + (f", {row.note}" if row.note else "")
        parts.append(_text(_SPAN_LABEL - 8, top + _SPAN_ROW / 2, row.name, "end"))
        kind = "bar much" if row.end_s is None else "bar plain"
        parts.append(_rect(kind, left, top + 2, width, _SPAN_ROW - 4, tip, 2))
    return _svg(WIDTH, height + 24, label, parts)


def lines(
    drawn: Sequence[Line],
    *,
    unit: str = "B",
    moments: Sequence[Moment] = (),
    height: int = 240,
    label: str = "",
) -> str:
    """Draw lines over time with a legend, and moments as dashed vertical lines."""
    known = [(x, y) for line in drawn for x, y in line.points if y is not None]
    xs = [x for line in drawn for x, _ in line.points]
    if not xs:
        return ""
    frame = _Frame(min(xs), max(xs), max([y for _, y in known], default=0.0) or 1.0, height, top=6)
    frame = replace(frame, top=6 + 13 * (max(frame.rows(moments), default=-1) + 1))
    parts = [*frame.grid(unit)]
    for number, line in enumerate(drawn):
        kind = line.kind or f"c{number % _LINE_COLOURS}"
        for stretch in _stretches(line.points):
            points = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in stretch)
            parts.append(f"<polyline class='line {kind}' points='{points}'>{_title(line.name)}</polyline>")
            if len(stretch) == 1:
                [(x, y)] = stretch
                where = f"cx='{frame.x(x):.1f}' cy='{frame.y(y):.1f}'"
                parts.append(f"<circle class='dot {kind}' {where} r='3'/>")
    parts += frame.marks(moments)
    return _svg(WIDTH, height + 24, label, parts) + _legend(drawn)


def scatter(points: Sequence[Point], *, across: str, label: str) -> str:
    """Draw points by seconds and another value; those that stand out are larger and joined by a line."""
    if not points:
        return ""
    frame = _Frame(0.0, max(each.seconds for each in points) or 1.0, 0.0, _HIGH, top=6)
    frame = replace(frame, most=max(each.value for each in points) or 1.0)
    parts = [*frame.levels("B")]
    pace = _nice(frame.last / 6)
    ticks = [number * pace for number in range(floor(frame.last / pace) + 1)]
    parts += [_text(frame.x(at), _HIGH + 14, f"{at:,.10g}", "middle", "tick") for at in ticks]
    parts.append(_text(WIDTH / 2, _HIGH + 32, across, "middle", "tick"))
    best = sorted((each.seconds, each.value) for each in points if each.stands_out)
    joined = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in best)
    parts.append(f"<polyline class='line c0' points='{joined}'/>" if len(best) > 1 else "")
    for each in sorted(points, key=lambda each: each.stands_out):
        where = f"cx='{frame.x(each.seconds):.1f}' cy='{frame.y(each.value):.1f}'"
        kind, radius = ("c0", 5) if each.stands_out else ("c1", 3)
        parts.append(f"<circle class='dot {kind}' {where} r='{radius}'>{_title(each.name)}</circle>")
    return _svg(WIDTH, _HIGH + 44, label, parts)


def _stretches(points: Iterable[tuple[float, float | None]]) -> Iterable[list[tuple[float, float]]]:
    """Yield the parts of a line between its gaps."""
    stretch: list[tuple[float, float]] = []
    for x, y in points:
        if y is not None:
            stretch.append((x, y))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps values to positions in the picture."""

    first: float
    last: float
    most: float
    height: int
    top: int

    def x(self, value: float) -> float:
        room = WIDTH - _LABEL - 20
        return _LABEL + room * (value - self.first) / ((self.last - self.first) or 1.0)

    def y(self, value: float) -> float:
        return self.height - (self.height - self.top) * value / self.most

    def levels(self, unit: str) -> Iterable[str]:
        step = _nice(self.most / 5)
        value = 0.0
        while value <= self.most * 1.0001:
            at = self.y(value)
            yield f"<line class='grid' x1='{_LABEL}' x2='{WIDTH - 20}' y1='{at:.1f}' y2='{at:.1f}'/>"
            yield _text(_LABEL - 8, at, amount(value, unit), "end", "tick")
            value += step

    def grid(self, unit: str) -> Iterable[str]:
        yield from self.levels(unit)
        span = self.last - self.first
        pace = next((each for each in _SECONDS if span / each <= 8), ceil(span / 8 / 86400) * 86400)
        at = ceil(self.first / pace) * pace
        while at <= self.last:
            yield _text(self.x(at), self.height + 14, _clock(at, pace), "middle", "tick")
            at += pace

    def rows(self, moments: Sequence[Moment]) -> list[int]:
        """Return the row of each moment's name, so that none covers another."""
        ends: list[float] = []
        found = []
        for each in moments:
            width = 6.5 * len(each.name) + 10
            left = self.x(each.at) - (width if self._turns(each) else 0)
            row = next((row for row, end in enumerate(ends) if end <= left), len(ends))
            ends[row : row + 1] = [left + width]
            found.append(row)
        return found

    def marks(self, moments: Sequence[Moment]) -> Iterable[str]:
        for each, row in zip(moments, self.rows(moments), strict=True):
            at = self.x(each.at)
            kind = "moment bad" if each.bad else "moment"
            y = 8 + 13 * row
            yield f"<line class='{kind}' x1='{at:.1f}' x2='{at:.1f}' y1='{y - 6}' y2='{self.height}'/>"
            if self._turns(each):
                yield _text(at - 5, y, each.name, "end", kind)
            else:
                yield _text(at + 5, y, each.name, "start", kind)

    def _turns(self, moment: Moment) -> bool:
        """Return whether the moment's name stands before it, for lack of room behind."""
        return self.x(moment.at) > WIDTH * 0.7


def _nice(value: float) -> float:
    """Return the next larger of 1, 2, 5, 10, 20, …"""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.9999)


def _clock(at: float, pace: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    if pace >= 86400:
        return moment.strftime("%d %b")
    return moment.strftime("%H:%M:%S" if pace < 60 else "%d %b %H:%M" if pace >= 21600 else "%H:%M")


def _legend(drawn: Sequence[Line]) -> str:
    named = [(line.kind or f"c{at % _LINE_COLOURS}", line.name) for at, line in enumerate(drawn)]
    keys = "".join(f"<span><i class='key {kind}'></i>{escape(name)}</span>" for kind, name in named)
    return f"<p class='legend'>{keys}</p>"


def _rect(kind: str, x: float, y: float, width: float, height: float, tip: str = "", round_: int = 0) -> str:
    size = f"x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'"
    return f"<rect class='{kind}' fill='{_FILLS[kind]}' {size} rx='{round_}'>{_title(tip)}</rect>"


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    where = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'"
    return f"<text class='{kind}' {where} dominant-baseline='central'>{escape(text)}</text>"


def _title(tip: str) -> str:
    return f"<title>{escape(tip)}</title>" if tip else ""


def _svg(width: int, height: float, label: str, parts: Iterable[str]) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {max(height, 1):.0f}' role='img' "
        f"font-family='sans-serif' font-size='12' fill='{_TEXT}' style='{PLOT_STYLE}' "
        f"aria-label='{escape(label)}'>{''.join(parts)}</svg>"
    )
