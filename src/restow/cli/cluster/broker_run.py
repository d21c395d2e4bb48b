"""What `restow broker` does between its start and its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cli.cluster.starting import started
from restow.cli.shared.frame import Answer, show
from restow.cli.shared.signals import told_to_stop
from restow.errors import BrokerFailed

if TYPE_CHECKING:
    from rich.console import Console

    from restow.cluster.broker.broker import BrokerServer


async def run_until_told(broker: BrokerServer, *, as_json: bool) -> None:
    """Start, say so, and stop in order when told to."""
    loop = asyncio.get_running_loop()
    with told_to_stop() as told:
        options = broker.options
        if not await started(broker.start(), told, f"port {options.port} of {options.host}"):
            return
        waiting = loop.create_task(told.wait())
        try:
            show(_ready(broker, as_json=as_json))
            failing = loop.create_task(broker.until_failed())
            await asyncio.wait({waiting, failing}, return_when=asyncio.FIRST_COMPLETED)
            failed = failing.done()
            failing.cancel()
            await broker.stop()
            if failed:
                raise BrokerFailed(f"broker {broker.options.broker_id} has ended: {failing.result()}")
        finally:
            waiting.cancel()


def _ready(broker: BrokerServer, *, as_json: bool) -> Answer:
    number, host = broker.options.broker_id, broker.options.host
    port = int(broker.address.rpartition(":")[2])

    def draw(console: Console) -> None:
        console.print(f"broker {number} listens on {host}:{port}; ctrl-C stops it")

    return Answer(
        document=lambda: {"id": number, "host": host, "port": port},
        draw=draw,
        as_json=as_json,
    )
