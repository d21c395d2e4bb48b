"""The hours of a week as squares: the fuller a square is drawn, the more it stands for."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.html.plots import PLOT_STYLE, amount

if TYPE_CHECKING:
    from collections.abc import Sequence

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LEFT, _TOP, _WIDE, _HIGH, _GAP = 40, 18, 29, 22, 2


def hour_name(hour: int) -> str:
    """Return an hour of the week in words: `Mon 09:00`."""
    return f"{DAYS[hour // 24]} {hour % 24:02}:00"


def week(values: Sequence[float | None], *, label: str = "") -> str:
    """Draw 168 values, from Monday midnight on; an hour of None is unknown and stays empty.

    The size of a square says the same as its colour, so that it can be read without colours.
    """
    most = max((each for each in values if each is not None), default=0.0) or 1.0
    parts = []
    for day, name in enumerate(DAYS):
        y = _TOP + day * _HIGH + _HIGH / 2
        where = f"x='{_LEFT - 8}' y='{y}' text-anchor='end' dominant-baseline='central'"
        parts.append(f"<text class='tick' {where}>{name}</text>")
    for hour in range(0, 24, 3):
        x = _LEFT + hour * _WIDE + _WIDE / 2
        parts.append(f"<text class='tick' x='{x}' y='{_TOP - 8}' text-anchor='middle'>{hour:02}</text>")
    for hour, value in enumerate(values):
        left, top = _LEFT + hour % 24 * _WIDE, _TOP + hour // 24 * _HIGH
        told = "not sampled" if value is None else amount(value, "B/s")
        parts.append(
            _square(left, top, None if value is None else value / most, f"{hour_name(hour)}: {told}")
        )
    width, height = _LEFT + 24 * _WIDE, _TOP + 7 * _HIGH
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' class='week' viewBox='0 0 {width} {height}' role='img' "
        f"font-family='sans-serif' font-size='12' fill='#667' style='{PLOT_STYLE}' "
        f"aria-label='{escape(label)}'>{''.join(parts)}</svg>"
    )


def _square(left: float, top: float, part: float | None, tip: str) -> str:
    wide, high = _WIDE - _GAP, _HIGH - _GAP
    frame = f"<rect class='cell' fill='#8882' x='{left}' y='{top}' width='{wide}' height='{high}' rx='3'/>"
    if part is None:
        return f"<g><title>{escape(tip)}</title>{frame}</g>"
    inner = max(part, 0.02) * high
    return (
        f"<g><title>{escape(tip)}</title>{frame}<rect class='bar plain' fill='#2f8f7b' "
        f"fill-opacity='{0.35 + 0.65 * part:.2f}' x='{left}' y='{top + high - inner:.1f}' width='{wide}' "
        f"height='{inner:.1f}' rx='3'/></g>"
    )
