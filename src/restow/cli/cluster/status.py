"""`restow cluster status`: who is there, who leads what, and what is not as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from restow.client import KafkaAdmin

ABOUT = "Brokers, leaders and what is out of sync."
HELP = """Show a cluster's brokers: who is controller, how many replicas each has, leads and keeps in sync.

Works on any Kafka, over Kafka's protocol alone.

\b
Examples:
  $ restow cluster status --bootstrap-server localhost:9092
  $ restow cluster status -b localhost:9092 --watch 2
  $ restow cluster status -b localhost:9092 --json
"""


def command(
    bootstrap: Bootstrap,
    watch: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Look again every so often, until ctrl-C.")
    ] = 0,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.cli.cluster.status_view import read_status, status_view

    if watch:
        on_cluster(bootstrap, lambda admin: _watch(admin, watch, as_json=as_json))
        return None
    status = on_cluster(bootstrap, read_status)
    return Answer(
        document=status.document,
        draw=lambda console: console.print(status_view(status)),
        as_json=as_json,
    )


async def _watch(admin: KafkaAdmin, seconds: float, *, as_json: bool) -> None:
    from restow.cli.shared.live import show_live

    await show_live(admin, seconds, as_json=as_json)
