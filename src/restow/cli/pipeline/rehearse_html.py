"""Rehearsed variants as one HTML file: time against impact, one picture per plan and fault."""

from __future__ import annotations

from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, Any

from restow.html.page import ReportPage, Section, Tile, page, paragraph, table
from restow.html.plots import Point, scatter
from restow.sizes import count, human_bytes, human_duration

if TYPE_CHECKING:
    from collections.abc import Sequence


def page_of(rows: Sequence[dict[str, Any]], rehearsals: int) -> str:
    """Return the page; rows come plan by plan, and fault by fault, the frontier first."""
    best = sum(row["frontier"] for row in rows)
    parts = groupby(rows, key=lambda row: (row["cluster"], row["plan"], row["what_if"]))
    sections = tuple(_section(*key, list(group)) for key, group in parts)
    return page(
        ReportPage(
            title="Rehearsed variants",
            lead="Each point is one variant: its median time, and what it costs clients. No variant without "
            "problems is both faster and cheaper than one on the line.",
            tiles=(
                Tile(value=f"{rehearsals:,}", name="rehearsals"),
                Tile(value=f"{len(rows):,}", name="variants"),
                Tile(value=f"{best:,}", name="on the frontier", kind="good"),
                Tile(value=f"{sum(row['with_problems'] > 0 for row in rows):,}", name="with problems"),
            ),
            sections=sections,
        )
    )


def _section(cluster: str, plan: str, what_if: str, rows: list[dict[str, Any]]) -> Section:
    drawn = [row for row in rows if isfinite(row["p50"])]
    points = [
        Point(name=_name(row), seconds=row["p50"], value=row["impact"] or 0.0, stands_out=row["frontier"])
        for row in drawn
    ]
    heads = ("throttle", "start", "P10", "P50", "P90", "impact", "fullest log dir", "frontier", "problems")
    cells = [
        (
            row["throttle"],
            f"{row['start']:%a %Y-%m-%d %H:%M}",
            *(_time(row[name]) for name in ("p10", "p50", "p90")),
            "?" if row["impact"] is None else human_bytes(row["impact"]),
            "?" if row["fullest"] is None else f"{row['fullest']:.0%}",
            "yes" if row["frontier"] else "",
            "; ".join(row["problems"] or ()),
        )
        for row in rows
    ]
    never = len(rows) - len(drawn)
    return Section(
        title=f"{cluster}, plan {plan[:19]}" + (f", if {what_if}" if what_if else ""),
        parts=(
            scatter(points, across="seconds", label="impact on clients by time"),
            *([paragraph(f"{count(never, 'variant')} would never end, and are not drawn")] if never else []),
            table(heads, cells),
        ),
    )


def _name(row: dict[str, Any]) -> str:
    impact = "" if row["impact"] is None else f", impact {human_bytes(row['impact'])}"
    return f"{row['throttle']}, {row['start']:%a %H:%M}: {_time(row['p50'])}{impact}"


def _time(seconds: float) -> str:
    return human_duration(seconds) if isfinite(seconds) else "never"
