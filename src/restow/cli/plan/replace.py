"""`restow plan replace`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.also import pairs
from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Put one broker in another's place."
HELP = """Let one broker have exactly what another has: the same replicas in the same places, so that it
leads what the other led. The other may be down, the new one need not be empty.

It is refused if the new broker has a replica of the same partition already, has no room, or stands in a rack
where two replicas of a partition would come together; --any-rack allows the last. Partitions that cannot be
moved now are named, and the plan is incomplete.

\b
Examples:
  $ restow plan replace 3:9 -b localhost:9092 -o plan.json
  $ restow plan replace 3:9 --any-rack -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    brokers: Annotated[
        str, typer.Argument(metavar="OLD:NEW,…", help="Which broker, and which in its place.")
    ],
) -> PlanRequest:
    return PlanRequest(
        replace=pairs(brokers, "BROKERS"),
        **given,
    )
