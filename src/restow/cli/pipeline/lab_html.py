"""The assignor lab as one HTML file: what each assignor does to all groups together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.html.page import ReportPage, Section, Tile, page
from restow.html.plots import Bar, bars

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAD = "What each assignor does to all groups together. The first bar is how they are now."
_PICTURES = (
    ("skew", "skew_now", "Partitions of the busiest member, as a multiple of the mean"),
    ("lag_skew", "lag_skew_now", "Lag of the busiest member, as a multiple of the mean"),
    ("most_lag", "most_lag_now", "Messages of the busiest members until the lag is cleared"),
    ("moved", None, "Partitions that change owners if all groups switch now"),
    ("without_owner_s", None, "Seconds without an owner meanwhile, of all partitions and at most"),
    ("replayed", None, "Partitions that would have changed owners in the past"),
    ("replayed_without_owner_s", None, "Seconds without an owner in the past, of all partitions and at most"),
    ("cross_rack", None, "Partitions that are read from another rack"),
)


def page_of(rows: Sequence[dict[str, Any]]) -> str:
    """Return the page; there is a row for each assignor."""
    groups = max((row["groups"] for row in rows), default=0)
    sections = tuple(
        Section(title=title, parts=(bars(_bars(rows, name, now), unit="", label=title),))
        for name, now, title in _PICTURES
        if any(row[name] is not None for row in rows)
    )
    return page(
        ReportPage(
            title="Assignors on consumer groups",
            lead=_LEAD if rows else "No assignor could assign any group: the table says why.",
            tiles=(
                Tile(value=f"{groups:,}", name="groups"),
                Tile(value=f"{len(rows):,}", name="assignors"),
            ),
            sections=sections,
        )
    )


def _bars(rows: Sequence[dict[str, Any]], name: str, now: str | None) -> list[Bar]:
    present = [Bar(name="now", value=rows[0][now])] if now is not None and rows else []
    return [*present, *(Bar(name=row["assignor"], value=row[name]) for row in rows)]
