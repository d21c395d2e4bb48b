"""`restow plan balance`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan_options import Given, broker_ids, planning
from restow.plan.request import Request

ABOUT = "Bring every goal into its band."
HELP = """Even out disks, traffic, replicas and leaders with the fewest bytes copied.

Every goal has a band around each broker's share; what is in its bands is not moved. Other wishes can be
fulfilled by the same plan: emptying brokers, fixing racks, spreading each topic.

\b
Examples:
  $ restow plan balance -b localhost:9092 -o plan.json
  $ restow plan balance --snapshot now.json --load load.json --band 0.05 --drain 3
"""


@planning
def command(
    given: Given,
    drain: Annotated[str | None, typer.Option(metavar="1,2", help="Empty these brokers too.")] = None,
    fix_racks: Annotated[bool, typer.Option(help="Spread replicas over racks too.")] = False,
    disks: Annotated[bool, typer.Option(help="Even out log dirs within brokers too.")] = False,
    spread_topics: Annotated[bool, typer.Option(help="Spread each topic over the brokers too.")] = False,
) -> Request:
    return Request(
        balance=True,
        drain=broker_ids(drain, "--drain"),
        fix_racks=fix_racks,
        disks=disks,
        spread_topics=spread_topics,
        **given,
    )
