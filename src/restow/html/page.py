"""HTML pages: one file with its style inside (`page.css`), light or dark; and paragraphs and tables."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_ROWS = 500
_FEW_SPACES = 5


class Markup(str):
    """Text that is HTML already. Everything else is escaped where it is put into a page."""

    __slots__ = ()


@frozen
class Tile:
    """One headline number; `kind` is "good", "bad" or neither."""

    value: str
    name: str
    kind: str = ""


@frozen
class Section:
    """A heading, a sentence or two, and pictures or tables as HTML."""

    title: str
    parts: tuple[str, ...]
    note: str = ""


@frozen
class ReportPage:
    """A report: title, tiles and sections."""

    title: str
    lead: str
    tiles: tuple[Tile, ...] = ()
    sections: tuple[Section, ...] = ()
    footer: str = ""


def page(report: ReportPage) -> str:
    """Return the HTML file."""
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    sections = "".join(map(section, report.sections))
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(report.title)}</title><style>{style}</style></head><body><main>"
        f"<h1>{escape(report.title)}</h1>{paragraph(report.lead, 'lead')}"
        f"{tiles(report.tiles)}\n{sections}"
        f"<footer>{escape(report.footer)}</footer></main></body></html>\n"
    )


def tiles(shown: Iterable[Tile]) -> str:
    """Return headline numbers side by side."""
    each = "".join(
        f"<div class='tile {tile.kind}'><b>{escape(tile.value)}</b><span>{escape(tile.name)}</span></div>"
        for tile in shown
    )
    return f"<div class='tiles'>{each}</div>"


def section(shown: Section) -> str:
    """Return a section."""
    return (
        f"<section><h2>{escape(shown.title)}</h2>"
        + (paragraph(shown.note) if shown.note else "")
        + "".join(shown.parts)
        + "</section>\n"
    )


def titled(title: str, *parts: str, note: str = "") -> str:
    """Return a section with this heading."""
    return section(Section(title=title, parts=parts, note=note))


def link(text: str, address: str) -> Markup:
    """Return a link. The address is one of ours: a path, with names from outside already quoted in it."""
    return Markup(f"<a href='{escape(address)}'>{escape(text)}</a>")


def subtitle(text: str) -> str:
    """Return a heading within a section."""
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str, kind: str = "note") -> str:
    """Return a paragraph of a class."""
    return f"<p class='{kind}'>{escape(text)}</p>"


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: int = 1,
    most: int = _MOST_ROWS,
    caption: str = "",
) -> str:
    """Return a table of at most this many rows, and how many more there are.

    The first `left` columns are left-aligned, the others right-aligned. Sentences take several lines. Cells
    are escaped unless they are `Markup`. The caption is for those who cannot see what stands above the table.
    """
    sides = ["l" if number < left else "" for number in range(len(heads))]
    head = "".join(
        f"<th scope='col' class='{side}'>{escape(each)}</th>" if each else "<td></td>"
        for each, side in zip(heads, sides, strict=True)
    )
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    rows = list(rows)
    body = "".join(
        f"<tr>{''.join(_cell(cell, side) for cell, side in zip(row, sides, strict=True))}</tr>"
        for row in rows[:most]
    )
    more = paragraph(f"and {len(rows) - most:,} more") if len(rows) > most else ""
    inner = f"{named}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    # What is too wide scrolls, so the keyboard has to reach it.
    reached = f" tabindex='0' role='region' aria-label='{escape(caption)}'" if caption else ""
    return f"<div class='wide'{reached}><table>{inner}</table></div>{more}"


def _cell(cell: object, side: str) -> str:
    if isinstance(cell, Markup):
        return f"<td class='{side}'>{cell}</td>"
    text = str(cell)
    words = " words" if text.count(" ") > _FEW_SPACES else ""
    return f"<td class='{side}{words}'>{escape(text)}</td>"
