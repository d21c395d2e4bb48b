"""`restow plan replace`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan_also import pairs
from restow.cli.plan_options import Given, planning
from restow.plan.request import Request

ABOUT = "Put one broker in another's place."
HELP = """Let one broker have all that another has: the same replicas, the same leaders.

\b
Examples:
  $ restow plan replace 3:9 -b localhost:9092 -o plan.json
"""


@planning
def command(
    given: Given,
    brokers: Annotated[
        str, typer.Argument(metavar="OLD:NEW,…", help="Which broker, and which in its place.")
    ],
) -> Request:
    return Request(
        replace=pairs(brokers, "BROKERS"),
        **given,
    )
