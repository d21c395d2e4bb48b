"""`restow plan balance`."""

from __future__ import annotations

from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Bring every goal into its band."
HELP = """Even out disks, traffic, replicas and leaders with the fewest bytes copied.

Every goal has a band around each broker's share; what is in its bands is not moved. Brokers that stay out of
band are named with the reason, and so are partitions that stay with two replicas in one rack (--fix-racks).

\b
Examples:
  $ restow plan balance -b localhost:9092 -o plan.json
  $ restow plan balance --snapshot now.json --load load.json --band 0.05 --drain 3
"""


@planning
def command(
    given: Given,
) -> PlanRequest:
    return PlanRequest(
        balance=True,
        **given,
    )
