"""`restow cluster status`: brokers, leaders, and partitions that are under-replicated or offline."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer

ABOUT = "Show brokers, leaders and replicas out of sync."
HELP = """Show a cluster's controller and, per broker, how many replicas it has, leads and keeps in sync.

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
        float, typer.Option(metavar="SECONDS", min=0, help="Refresh at this interval, until ctrl-C.")
    ] = 0,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.cli.cluster.status_view import read_status, status_view

    if watch:
        from restow.cli.shared.live import show_live

        on_cluster(bootstrap, lambda admin: show_live(admin, watch, as_json=as_json))
        return None
    status = on_cluster(bootstrap, read_status)
    return Answer(
        document=status.document,
        draw=lambda console: console.print(status_view(status)),
        as_json=as_json,
    )
