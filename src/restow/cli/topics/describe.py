"""`restow topics describe`: show a topic's replicas, leaders, ISRs and configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow._frozen import frozen
from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import DEFAULT_ROWS, clean, heading, put
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from rich.console import Console

    from restow.client import ClusterView, Config, KafkaAdmin
    from restow.model import Partition, Topic

ABOUT = "Show a topic's replicas, leaders, ISRs and configs."
HELP = """Show a topic's replicas and their balance, its leaders, its ISRs and the configs set for it.

\b
Examples:
  $ restow topics describe orders --bootstrap-server localhost:9092
  $ restow topics describe orders -b localhost:9092 --json
"""


@frozen
class _Found:
    view: ClusterView
    topic: Topic
    configs: tuple[Config, ...]


def command(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")],
    bootstrap: Bootstrap,
    rows: Annotated[
        int, typer.Option(min=0, help="Most partitions to draw, the first and the last; 0 draws all.")
    ] = DEFAULT_ROWS,
    as_json: AsJson = False,
) -> Answer:
    found = on_cluster(bootstrap, lambda admin: _find(admin, name))
    return Answer(
        document=lambda: _document(found),
        draw=lambda console: _draw(console, found, rows),
        as_json=as_json,
    )


async def _find(admin: KafkaAdmin, name: str) -> _Found:
    from restow.client import BrokerError, ConfigResource

    view = await admin.describe_cluster()
    (topic,) = await admin.describe_topics([name])
    of = ConfigResource("topic", name)
    configs = (await admin.describe_configs([of]))[of]
    if isinstance(configs, BrokerError):
        raise configs
    own = (config for config in configs.values() if config.source == "topic")
    return _Found(view=view, topic=topic, configs=tuple(sorted(own, key=lambda config: config.name)))


def _document(found: _Found) -> dict[str, object]:
    topic = found.topic
    return {
        "name": topic.name,
        "id": topic.id,
        "internal": topic.internal,
        "configs": {config.name: config.value for config in found.configs},
        "partitions": [
            {
                "partition": each.number,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
            }
            for each in topic.partitions
        ],
    }


def _draw(console: Console, found: _Found, rows: int) -> None:
    from restow.cli.place.command import PlaceReport
    from restow.cli.place.view import draw_placement
    from restow.model import Broker
    from restow.placement import evaluate

    partitions = found.topic.partitions
    assignment = {each.number: _leader_first(each) for each in partitions}
    there = {node.id: Broker(node.id, node.rack) for node in found.view.nodes}
    gone = {broker for replicas in assignment.values() for broker in replicas} - there.keys()
    brokers = tuple(sorted((*there.values(), *map(Broker, gone)), key=lambda broker: broker.id))
    report = PlaceReport(
        topic=found.topic.name,
        brokers=brokers,
        assignment=assignment,
        evaluation=evaluate(assignment, brokers),
    )
    draw_placement(console, report, rows)
    _draw_troubles(console, partitions)
    if found.configs:
        heading(console, "Configs")
        for config in found.configs:
            put(console, f"  {clean(config.name)}={clean(config.value or '')}")


def _leader_first(partition: Partition) -> tuple[int, ...]:
    """Put the present leader first, because the picture shows who leads, not the preferred leader."""
    if partition.leader is None or partition.leader not in partition.replicas:
        return partition.replicas
    return (partition.leader, *(each for each in partition.replicas if each != partition.leader))


def _draw_troubles(console: Console, partitions: tuple[Partition, ...]) -> None:
    lines = [line for each in partitions if (line := _trouble(each))]
    if lines:
        heading(console, "Not as it should be")
        for line in lines:
            put(console, f"  {line}", style="yellow")


def _trouble(partition: Partition) -> str | None:
    behind = [broker for broker in partition.replicas if broker not in partition.isr]
    if partition.leader is None:
        return f"partition {partition.number} has no leader; its replicas are {list(partition.replicas)}"
    if behind:
        return f"partition {partition.number}: {behind} not in sync"
    if partition.leader != partition.replicas[0]:
        return f"partition {partition.number} is led by {partition.leader}, not by {partition.replicas[0]}"
    return None
