"""`restow topics list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import NAME, NUMBER, Grid

if TYPE_CHECKING:
    from rich.console import Console

    from restow.model import Topic

ABOUT = "List topics with their partitions and replication factors."
HELP = """List the topics of a cluster, with partitions and replication factors.

\b
Examples:
  $ restow topics list --bootstrap-server localhost:9092
  $ restow topics list -b localhost:9092 --json
"""


def command(bootstrap: Bootstrap, as_json: AsJson = False) -> Answer:
    topics = on_cluster(bootstrap, lambda admin: admin.describe_topics())
    return Answer(
        document=lambda: {"topics": [_document(topic) for topic in topics]},
        draw=lambda console: _draw(console, topics),
        as_json=as_json,
    )


def _replication_factor(topic: Topic) -> int:
    return max((len(partition.replicas) for partition in topic.partitions), default=0)


def _document(topic: Topic) -> dict[str, object]:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": _replication_factor(topic),
        "internal": topic.internal,
    }


def _draw(console: Console, topics: tuple[Topic, ...]) -> None:
    table = Grid(
        ("topic", NAME), ("partitions", NUMBER), ("replication factor", NUMBER), ("out of sync", NUMBER)
    )
    for topic in topics:
        behind = sum(len(partition.isr) < len(partition.replicas) for partition in topic.partitions)
        table.add_row(
            topic.name,
            f"{len(topic.partitions):,}",
            str(_replication_factor(topic)),
            f"{behind:,}" if behind else "-",
            style="dim" if topic.internal else None,
        )
    console.print(table if topics else "no topics")
