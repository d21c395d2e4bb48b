"""`restow topics create-partitions`."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer, line

ABOUT = "Give a topic more partitions."
HELP = """Give a topic more partitions. Existing partitions stay where they are. Kafka cannot remove
partitions again, and producers will map keys to other partitions.

\b
Examples:
  $ restow topics create-partitions orders --partitions 18 -b localhost:9092
  $ restow topics create-partitions orders --partitions 14 --replica-assignment 0:1,1:2 -b h:9092
"""


def command(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")],
    bootstrap: Bootstrap,
    partitions: Annotated[int, typer.Option(min=1, help="Total number of partitions.")],
    replica_assignment: Annotated[
        str | None, typer.Option(metavar="0:1,…", help="Replicas of the new partitions, by hand.")
    ] = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.placement import parse_by_hand

    by_hand = list(parse_by_hand(replica_assignment).values()) if replica_assignment else None
    on_cluster(bootstrap, lambda admin: admin.create_partitions(name, partitions, by_hand))
    document = {"topic": name, "partitions": partitions}
    return line(f"{name} has {partitions:,} partitions", document, as_json=as_json)
