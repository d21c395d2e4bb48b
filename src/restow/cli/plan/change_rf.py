"""`restow plan change-rf`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.also import replication_factors_of
from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Change replication factors."
HELP = """Give topics more or fewer replicas. --topics has to say which; '*' means all but Kafka's internal
topics, which change only if they are named ('__consumer_offsets' or '__*').

New replicas go where the least is, across racks. Those dropped are on brokers that leave or are down, then
second in their rack, then on the fullest broker; racks that have a replica keep one while there are enough,
and the leader stays. A replication factor below min.insync.replicas is refused.

\b
Examples:
  $ restow plan change-rf 3 --topics orders,payments -b localhost:9092 -o plan.json
  $ restow plan change-rf 3 --topics '*' -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    replicas: Annotated[
        int,
        typer.Argument(
            min=1, metavar="REPLICATION_FACTOR", help="How many replicas each partition is to have."
        ),
    ],
) -> PlanRequest:
    return PlanRequest(
        replication_factors=replication_factors_of(given["only_topics"], replicas),
        **given,
    )
