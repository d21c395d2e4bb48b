"""Small pieces of HTML: tables and bars. Every text is escaped here, whatever a topic is called."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_ROWS = 500
_BEFORE, _AFTER, _TEXT = "#b9c6d6", "#2f7d6d", "#667"


def paragraph(text: str, kind: str = "") -> str:
    """One paragraph, of a class if one is named."""
    return f"<p{f' class={kind!r}' if kind else ''}>{escape(text)}</p>"


def table(heads: Iterable[str], rows: Sequence[Iterable[object]], most: int = _MOST_ROWS) -> str:
    """A table, and how many more rows there are than are shown."""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows[:most]
    )
    more = len(rows) - most
    return f"<table><tr>{head}</tr>{body}</table>" + (
        paragraph(f"and {more:,} more", "note") if more > 0 else ""
    )


def bars(amounts: Sequence[tuple[str, int, int]]) -> str:
    """An SVG picture of names, each with its bytes before and after.

    Colours are attributes: a style would change the rest of a notebook.
    """
    most = max((max(before, after) for _, before, after in amounts), default=0) or 1
    rows = []
    for number, (name, before, after) in enumerate(amounts):
        top = 24 * number
        for colour, value, below in ((_BEFORE, before, 2), (_AFTER, after, 11)):
            width = 480 * value / most
            rows.append(f"<rect fill='{colour}' x='60' y='{top + below}' width='{width:.1f}' height='8'/>")
        rows.append(f"<text x='0' y='{top + 15}'>{escape(name)}</text>")
        rows.append(f"<text x='550' y='{top + 15}'>{human_bytes(before)} → {human_bytes(after)}</text>")
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 {24 * len(amounts) + 4}' role='img' "
        f"font-family='sans-serif' font-size='12' fill='{_TEXT}' style='max-width: 720px' "
        f"aria-label='bytes of each broker before and after'>{''.join(rows)}</svg>"
    )
