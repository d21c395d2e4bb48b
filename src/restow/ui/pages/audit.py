"""The log of who did what when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.html.page import paragraph, table
from restow.ui.frame import Shown, at, pager
from restow.ui.lists import paged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROWS = 200


def audit_page(entries: Sequence[Mapping[str, Any]], number: int) -> Shown:
    """Return the log, newest first."""
    found = paged(entries, number, _ROWS)
    rows = [(at(each["at_ms"]), each["who"], each["what"], _facts(each)) for each in found.rows]
    note = paragraph(
        "What was asked for on these pages. Commands in terminals are in the journals of runs alone."
    )
    shown = table(("when", "who", "what", "with"), rows, left=4, caption="audit log")
    return Shown(
        title="Audit", body=f"<section>{note}{shown}{pager('/audit', found.number, found.pages)}</section>"
    )


def _facts(entry: Mapping[str, Any]) -> str:
    facts = {name: value for name, value in entry.items() if name not in ("at_ms", "who", "what")}
    asked = facts.pop("asked", None)
    facts |= asked if isinstance(asked, dict) else {}
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value not in ("", None))
