"""`restow plan add-brokers`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.also import broker_ids
from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Give new brokers their share."
HELP = """Give brokers that have joined their share of every goal. Replicas go to them alone, none moves
between the others; who leads may change anywhere.

\b
Examples:
  $ restow plan add-brokers 7,8 -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    brokers: Annotated[str, typer.Argument(metavar="7,8", help="The brokers that are new.")],
) -> PlanRequest:
    return PlanRequest(
        add=broker_ids(brokers, "BROKERS"),
        **given,
    )
