"""The output of a verdict: a table, a JSON document, and an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.shared.drawing import PRETTY, clean, glyphs
from restow.cli.shared.frame import FAILED, Answer
from restow.cli.shared.tables import LABEL, WORDS, Grid
from restow.model import CheckOutcome

if TYPE_CHECKING:
    from rich.console import Console

    from restow.model import Verdict

_PRETTY = {"holds": "✓", "fails": "✗", "unknown": "?"}
_PLAIN = {"holds": "+", "fails": "x", "unknown": "?"}
_STYLES = {"holds": "green", "fails": "red", "unknown": "yellow"}


def verdict_answer(verdict: Verdict, *, as_json: bool, holds: bool | None = None) -> Answer:
    """Return the answer that shows the verdict, with exit code 1 unless all checks hold.

    `holds` overrides that, for callers that tolerate a check that could not be made.
    """
    good = verdict.holds if holds is None else holds
    return Answer(
        document=lambda: verdict_document(verdict, holds=good),
        draw=lambda console: draw_verdict(console, verdict, holds=good),
        as_json=as_json,
        code=0 if good else FAILED,
    )


def verdict_document(verdict: Verdict, *, holds: bool) -> dict[str, object]:
    """Return the document that `--json` prints."""
    return {
        "subject": verdict.subject,
        "holds": holds,
        "checks": [
            {
                "name": check.name,
                "outcome": check.outcome.value,
                "evidence": check.evidence,
                "advice": check.advice,
            }
            for check in verdict.checks
        ],
        "notes": list(verdict.notes),
    }


def draw_verdict(console: Console, verdict: Verdict, *, holds: bool) -> None:
    """Draw one line per check, with advice below each one that fails."""
    from rich.text import Text

    is_pretty = glyphs(console) is PRETTY
    signs, arrow = (_PRETTY, "→") if is_pretty else (_PLAIN, "->")
    table = Grid(("", LABEL), ("", LABEL), ("", WORDS), header=False)
    for check in verdict.checks:
        words = Text(clean(check.evidence))
        if check.advice and check.outcome is not CheckOutcome.HOLDS:
            words.append(f"\n{arrow} {clean(check.advice)}", style="dim")
        outcome = check.outcome.value
        table.add_row(Text(signs[outcome], style=_STYLES[outcome]), check.name, words)
    console.print(table)
    for note in verdict.notes:
        console.print(Text(clean(note), style="dim"))
    fails = any(check.outcome is CheckOutcome.FAILS for check in verdict.checks)
    answer, style = ("yes", "green") if holds else ("no", "red") if fails else ("not known", "yellow")
    console.print(Text(f"{verdict.subject}: {answer}", style=style))
