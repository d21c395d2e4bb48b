"""Make checks, with their evidence in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.model import Check, CheckOutcome
from restow.sizes import count, some

if TYPE_CHECKING:
    from collections.abc import Sequence


def holds(name: str, evidence: str) -> Check:
    """Return a check that passes."""
    return Check(name=name, outcome=CheckOutcome.HOLDS, evidence=evidence)


def fails(name: str, evidence: str, advice: str = "") -> Check:
    """Return a check that fails."""
    return Check(name=name, outcome=CheckOutcome.FAILS, evidence=evidence, advice=advice)


def unknown(name: str, evidence: str, advice: str = "") -> Check:
    """Return a check that could not be made."""
    return Check(name=name, outcome=CheckOutcome.UNKNOWN, evidence=evidence, advice=advice)


def none_of(name: str, found: Sequence[object], noun: str, *, good: str, advice: str) -> Check:
    """Return a check that passes if nothing was found."""
    if not found:
        return holds(name, good)
    return fails(name, f"{count(len(found), noun)}: {some(found)}", advice)
