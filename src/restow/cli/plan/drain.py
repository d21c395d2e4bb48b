"""`restow plan drain`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.also import broker_ids
from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Empty brokers, so that they can be taken away."
HELP = """Move everything off some brokers, which may be down. Nothing else moves.

What cannot be moved is named with the reason (its only replica is on a broker that is down, it is being
moved, it is excluded), and the plan is incomplete. With --topics only these topics are moved off.

\b
Examples:
  $ restow plan drain 3 -b localhost:9092 -o plan.json
  $ restow plan drain 3 --partial -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers to empty.")],
) -> PlanRequest:
    return PlanRequest(
        drain=broker_ids(brokers, "BROKERS"),
        **given,
    )
