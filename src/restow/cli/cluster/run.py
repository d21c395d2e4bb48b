"""What `restow cluster up` does between its start and its end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from restow.cli.cluster.starting import started
from restow.cli.shared.connection import hush
from restow.cli.shared.frame import Answer, show
from restow.cli.shared.live import show_live
from restow.cli.shared.signals import told_to_stop
from restow.client import ConnectionSettings, connected

if TYPE_CHECKING:
    from rich.console import Console

    from restow.cluster.embedded import EmbeddedCluster

_LOOK_EVERY_S = 2.0


async def run_until_told(cluster: EmbeddedCluster, *, as_json: bool) -> None:
    """Start, say so, show what happens, and stop in order at the first signal."""
    with told_to_stop() as told:
        if not await started(cluster.start(), told, "a port of these brokers"):
            return
        try:
            show(_ready(cluster, as_json=as_json))
            if as_json or not sys.stdout.isatty():
                await told.wait()
            else:
                hush()
                async with connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin:
                    await show_live(admin, _LOOK_EVERY_S, told=told)
        finally:
            await cluster.stop()


def _ready(cluster: EmbeddedCluster, *, as_json: bool) -> Answer:
    def draw(console: Console) -> None:
        console.print(f"{len(cluster.brokers)} brokers are up; ctrl-C stops them")
        console.print(f"bootstrap servers: {cluster.bootstrap}", soft_wrap=True)

    return Answer(document=lambda: _document(cluster), draw=draw, as_json=as_json)


def _document(cluster: EmbeddedCluster) -> dict[str, object]:
    brokers = sorted(cluster.brokers.items())
    return {
        "bootstrap_servers": cluster.bootstrap,
        "cluster_id": brokers[0][1].services.metadata.cluster_id,
        "brokers": [
            {
                "id": number,
                "host": broker.options.host,
                "port": int(broker.address.rpartition(":")[2]),
                "rack": broker.options.rack,
                "log_dirs": list(broker.options.log_dirs),
            }
            for number, broker in brokers
        ],
    }
