"""The log of who did what when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from restow.html.page import link, paragraph, table
from restow.ui.addresses import plan_address, rehearsal_address, run_address
from restow.ui.frame import Shown, at, pager
from restow.ui.lists import paged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROWS = 200
_DIGEST = len("sha256:") + 12
"""So much of a digest is shown; the log has all of it."""


def audit_page(entries: Sequence[Mapping[str, Any]], number: int) -> Shown:
    """Return the log, newest first."""
    found = paged(entries, number, _ROWS)
    rows = [(at(each["at_ms"]), each["who"], _what(each), _facts(each)) for each in found.rows]
    note = paragraph(
        "What was asked for on these pages. Commands in terminals are in the journals of runs alone."
    )
    shown = table(("when", "who", "what", "with"), rows, left=4, caption="audit log")
    return Shown(
        title="Audit", body=f"<section>{note}{shown}{pager('/audit', found.number, found.pages)}</section>"
    )


def _what(entry: Mapping[str, Any]) -> str:
    """Return what was asked for, with a link to what that made or changed."""
    words, name = entry["what"], str(entry.get("id", ""))
    verb, _, of = words.partition(" ")
    if entry.get("run"):
        return link(words, run_address(str(entry["run"])))
    if entry.get("plan"):
        return link(words, plan_address(quote(str(entry["plan"]), safe="")))
    if verb == "rehearse":
        return link(words, rehearsal_address(quote(of, safe=""), quote(name, safe="")))
    return link(words, plan_address(quote(name, safe=""))) if name else words


def _facts(entry: Mapping[str, Any]) -> str:
    facts = {name: value for name, value in entry.items() if name not in ("at_ms", "who", "what")}
    asked = facts.pop("asked", None)
    facts |= asked if isinstance(asked, dict) else {}
    return ", ".join(
        f"{name.replace('_', ' ')} {_told(name, value)}"
        for name, value in facts.items()
        if value not in ("", None)
    )


def _told(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{str(value)[:_DIGEST]}…" if name == "digest" else str(value)
