"""The results of checks, with evidence."""

from __future__ import annotations

from enum import Enum

from restow._frozen import frozen
from restow.model.showing import verdict_html


class CheckOutcome(Enum):
    """The result of a check."""

    HOLDS = "holds"
    FAILS = "fails"
    UNKNOWN = "unknown"
    """There was no answer, for example from a broker; counts as a failure."""


@frozen
class Check:
    """One named condition. `evidence` says what was seen, `advice` what to do."""

    name: str
    outcome: CheckOutcome
    evidence: str
    advice: str = ""


@frozen
class Verdict:
    """All checks for one question."""

    subject: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """What is worth knowing beside the checks, and decides nothing."""

    @property
    def holds(self) -> bool:
        return all(check.outcome is CheckOutcome.HOLDS for check in self.checks)

    def _repr_html_(self) -> str:
        return verdict_html(self)
