"""`restow groups list`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import LABEL, NAME, NUMBER, Grid

if TYPE_CHECKING:
    from rich.console import Console

    from restow.client import ConsumerGroup, KafkaAdmin
    from restow.model import BrokerId

ABOUT = "List consumer groups of both protocols."
HELP = """List the consumer groups of a cluster, with their protocols, states and coordinators.

The protocol is classic or consumer (KIP-848, group.protocol=consumer).

\b
Examples:
  $ restow groups list --bootstrap-server localhost:9092
  $ restow groups list -b localhost:9092 --json
"""


def command(bootstrap: Bootstrap, as_json: AsJson = False) -> Answer:
    groups = on_cluster(bootstrap, _listed)
    return Answer(
        document=lambda: {
            "groups": [
                {
                    "name": group.name,
                    "protocol": group.protocol,
                    "state": group.state,
                    "coordinator": coordinator,
                }
                for group, coordinator in groups
            ]
        },
        draw=lambda console: _draw(console, groups),
        as_json=as_json,
    )


async def _listed(admin: KafkaAdmin) -> list[tuple[ConsumerGroup, BrokerId]]:
    nodes = (await admin.describe_cluster()).nodes
    answers = await asyncio.gather(*(admin.list_consumer_groups(node.id) for node in nodes))
    found = [
        (group, node.id) for node, answer in zip(nodes, answers, strict=True) for group in answer.values()
    ]
    return sorted(found, key=lambda each: each[0].name)


def _draw(console: Console, groups: list[tuple[ConsumerGroup, BrokerId]]) -> None:
    table = Grid(("group", NAME), ("protocol", LABEL), ("state", LABEL), ("coordinator", NUMBER))
    for group, coordinator in groups:
        table.add_row(
            group.name,
            group.protocol,
            group.state,
            str(coordinator),
            style="dim" if group.state == "Empty" else None,
        )
    console.print(table if groups else "no consumer groups")
