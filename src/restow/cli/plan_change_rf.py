"""`restow plan change-rf`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan_options import Given, planning
from restow.plan.request import Request

ABOUT = "Change replication factors."
HELP = """Give topics more or fewer replicas. New ones go where the least is, across racks; those dropped
are the ones that are down, or second in their rack, or on the fullest broker, and never the leader.

\b
Examples:
  $ restow plan change-rf 3 --topics orders,payments -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    factor: Annotated[int, typer.Argument(min=1, help="How many replicas each partition is to have.")],
) -> Request:
    return Request(
        factors=dict.fromkeys(given["only_topics"] or ("*",), factor),
        **given,
    )
