"""`restow topics expand`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import Answer

ABOUT = "More partitions for a topic."
HELP = """Give a topic more partitions. Those that exist stay where they are. There is no way back, and keys
are spread over partitions differently afterwards.

\b
Examples:
  $ restow topics expand orders --partitions 18 -b localhost:9092
  $ restow topics expand orders --partitions 14 --replica-assignment 0:1,1:2 -b localhost:9092
"""


def command(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")],
    bootstrap: Bootstrap,
    partitions: Annotated[int, typer.Option(min=1, help="How many it is to have in all.")],
    replica_assignment: Annotated[
        str | None, typer.Option(metavar="0:1,…", help="Replicas of the new ones by hand.")
    ] = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.placement import parse_by_hand

    by_hand = list(parse_by_hand(replica_assignment).values()) if replica_assignment else None
    on_cluster(bootstrap, lambda admin: admin.create_partitions(name, partitions, by_hand))
    return Answer(
        document=lambda: {"topic": name, "partitions": partitions},
        draw=lambda console: console.print(f"{clean(name)} has {partitions:,} partitions"),
        as_json=as_json,
    )
