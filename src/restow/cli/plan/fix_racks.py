"""`restow plan fix-racks`."""

from __future__ import annotations

from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Spread replicas over racks."
HELP = """Move replicas whose rack has another of the same partition, while some rack has none.
Nothing else moves. Partitions that cannot be moved now are named, and the plan is incomplete.

\b
Examples:
  $ restow plan fix-racks -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
) -> PlanRequest:
    return PlanRequest(
        fix_racks=True,
        **given,
    )
