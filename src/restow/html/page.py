"""HTML pages: one file with its style inside (`page.css`), light or dark; and paragraphs and tables."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_ROWS = 500
_FEW_SPACES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One headline number; `kind` is "good", "bad" or neither."""

    value: str
    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, a sentence or two, and pictures or tables as HTML."""

    title: str
    parts: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    tiles = "".join(
        f"<div class='tile {tile.kind}'><b>{escape(tile.value)}</b><span>{escape(tile.name)}</span></div>"
        for tile in report.tiles
    )
    sections = "".join(
        f"<section><h2>{escape(each.title)}</h2>"
        + (paragraph(each.note) if each.note else "")
        + "".join(each.parts)
        + "</section>\n"
        for each in report.sections
    )
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(report.title)}</title><style>{style}</style></head><body><main>"
        f"<h1>{escape(report.title)}</h1>{paragraph(report.lead, 'lead')}"
        f"<div class='tiles'>{tiles}</div>\n{sections}"
        f"<footer>{escape(report.footer)}</footer></main></body></html>\n"
    )


def subtitle(text: str) -> str:
    """Return a heading within a section."""
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str, kind: str = "note") -> str:
    """Return a paragraph of a class."""
    return f"<p class='{kind}'>{escape(text)}</p>"


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1, most: int = _MOST_ROWS
) -> str:
    """Return a table of at most this many rows, and how many more there are.

    The first `left` columns are left-aligned, the others right-aligned. Sentences take several lines.
    """
    sides = ["l" if number < left else "" for number in range(len(heads))]
    head = "".join(f"<th class='{side}'>{escape(each)}</th>" for each, side in zip(heads, sides, strict=True))
    rows = list(rows)
    body = "".join(
        f"<tr>{''.join(_cell(str(cell), side) for cell, side in zip(row, sides, strict=True))}</tr>"
        for row in rows[:most]
    )
    more = paragraph(f"and {len(rows) - most:,} more") if len(rows) > most else ""
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>{more}"


def _cell(text: str, side: str) -> str:
    words = " words" if text.count(" ") > _FEW_SPACES else ""
    return f"<td class='{side}{words}'>{escape(text)}</td>"
