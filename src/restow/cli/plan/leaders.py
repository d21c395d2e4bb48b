"""`restow plan leaders`."""

from __future__ import annotations

from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Even out leaders; no data moves."
HELP = """Change which replica leads, so that leaders, their traffic and their work are even.
Nothing is copied. Partitions with a replica that lags behind keep their leaders, and are named.

\b
Examples:
  $ restow plan leaders -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
) -> PlanRequest:
    return PlanRequest(
        leaders=True,
        **given,
    )
