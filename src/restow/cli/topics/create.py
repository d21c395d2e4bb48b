"""`restow topics create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer, line
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from restow.client import KafkaAdmin, NewTopic

ABOUT = "Create a topic."
HELP = """Create a topic. Without numbers the cluster's defaults apply.

\b
Examples:
  $ restow topics create orders --partitions 12 --replication-factor 3 -b localhost:9092
  $ restow topics create orders --replica-assignment 0:1:2,1:2:0 -b localhost:9092
  $ restow topics create orders --config retention.ms=86400000 --if-not-exists -b localhost:9092
"""


def command(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")],
    bootstrap: Bootstrap,
    partitions: Annotated[int | None, typer.Option(min=1, help="Number of partitions.")] = None,
    replication_factor: Annotated[int | None, typer.Option(min=1, help="Replicas of each partition.")] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="0:1:2,…", help="Replicas by hand: brokers of partition 0, then of 1, …"),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set a topic config; repeatable.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option(help="Succeed if the topic exists.")] = False,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.cluster.broker import parse_configs
    from restow.client import NewTopic
    from restow.placement import parse_by_hand

    if replica_assignment and (partitions or replication_factor):
        raise InvalidInput("--replica-assignment says all: leave --partitions and --replication-factor out")
    by_hand = parse_by_hand(replica_assignment) if replica_assignment else {}
    topic = NewTopic(
        name=name,
        partitions=partitions or -1,
        replication_factor=replication_factor or -1,
        by_hand={number: tuple(replicas) for number, replicas in by_hand.items()},
        configs=parse_configs(config or ()),
    )
    made = on_cluster(bootstrap, lambda admin: _create(admin, topic, if_not_exists=if_not_exists))
    outcome = "is made" if made else "is there already"
    return line(f"{name} {outcome}", {"topic": name, "created": made}, as_json=as_json)


async def _create(admin: KafkaAdmin, topic: NewTopic, *, if_not_exists: bool) -> bool:
    from restow.wire.error_codes import ErrorCode

    error = (await admin.create_topics([topic]))[topic.name]
    if error is None:
        return True
    if if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return False
    raise error
