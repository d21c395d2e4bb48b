"""`restow plan disks`."""

from __future__ import annotations

from restow.cli.plan.options import Given, planning
from restow.plan.request.request import PlanRequest

ABOUT = "Even out log dirs within brokers."
HELP = """Move replicas between the log dirs of the same broker, until each has its share by the size of its
file system. Nothing goes over the network. Cordoned log dirs only give. Log dirs that stay uneven are named.

\b
Examples:
  $ restow plan disks -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
) -> PlanRequest:
    return PlanRequest(
        disks=True,
        **given,
    )
