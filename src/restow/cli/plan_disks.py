"""`restow plan disks`."""

from __future__ import annotations

from restow.cli.plan_options import Given, planning
from restow.plan.request import Request

ABOUT = "Even out log dirs within brokers."
HELP = """Move replicas between the log dirs of the same broker. Nothing goes over the network.

\b
Examples:
  $ restow plan disks -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
) -> Request:
    return Request(
        disks=True,
        **given,
    )
