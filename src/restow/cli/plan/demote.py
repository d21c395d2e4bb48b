"""`restow plan demote`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.also import broker_ids
from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Let brokers lead nothing; no data moves."
HELP = """Take leadership from some brokers: of each partition that they lead, another replica that is in sync
comes first and leads. Replicas stay where they are, and nothing is copied.

Partitions that nobody else could lead are named with the reason, and the plan is incomplete.

\b
Examples:
  $ restow plan demote 3 -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers that are to lead nothing.")],
) -> PlanRequest:
    return PlanRequest(
        demote=broker_ids(brokers, "BROKERS"),
        **given,
    )
