"""`restow plan relieve`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.options import Given, planning, shares
from restow.errors import InvalidInput
from restow.plan.request.request import PlanRequest

ABOUT = "Take from brokers that are above a limit."
HELP = """Take just enough from brokers that have more than a limit, in multiples of their share. Brokers that
stay above it are named with the reason.

\b
Examples:
  $ restow plan relieve disk=1.2 -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    limits: Annotated[list[str], typer.Argument(metavar="GOAL=LIMIT…", help="Goals, each with its limit.")],
) -> PlanRequest:
    return PlanRequest(
        relieve=limits_of(limits),
        **given,
    )


def limits_of(items: list[str]) -> dict[str, float]:
    """`disk=1.2`: goals, each with the most that a broker may have of it in multiples of its share."""
    found = {}
    for goal, limit in shares(items, "LIMIT", ()).items():
        if limit is None or limit <= 1:
            raise InvalidInput(f"{goal}: a limit is a number above 1, like disk=1.2")
        found[goal] = limit
    if not found:
        raise InvalidInput("say which goals and how much, like disk=1.2")
    return found
