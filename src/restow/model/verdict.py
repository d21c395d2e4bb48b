"""What was found to hold and what not, each with what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CheckOutcome(Enum):
    """How a check came out."""

    HOLDS = "holds"
    FAILS = "fails"
    UNKNOWN = "unknown"
    """It could not be told, say because a broker did not answer; that counts as failing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One named thing that should hold. `evidence` says what was seen, `advice` what to do about it."""

    name: str
    outcome: CheckOutcome
    evidence: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All checks of one question."""

    subject: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        return all(check.outcome is CheckOutcome.HOLDS for check in self.checks)
