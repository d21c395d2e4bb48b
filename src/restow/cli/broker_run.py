"""What `restow broker` does between its start and its end."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from restow.cli.frame import Answer, show
from restow.cli.signals import told_to_stop
from restow.errors import BrokerFailed

if TYPE_CHECKING:
    from rich.console import Console

    from restow.cluster.broker import Broker


async def run_until_told(broker: Broker, *, as_json: bool) -> None:
    """Start, say so, and stop in order when told to."""
    loop = asyncio.get_running_loop()
    with told_to_stop() as told:
        waiting = loop.create_task(told.wait())
        try:
            if not await _started(broker, waiting):
                return
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


async def _started(broker: Broker, told: asyncio.Task[bool]) -> bool:
    """Whether it has; False if it was told to stop before."""
    starting = asyncio.get_running_loop().create_task(broker.start())
    await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        return False
    try:
        starting.result()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        options = broker.options
        raise BrokerFailed(
            f"port {options.port} of {options.host} is taken: give another --port, or 0 for a free one"
        ) from error
    return True


def _ready(broker: Broker, *, as_json: bool) -> Answer:
    number, host = broker.options.broker_id, broker.options.host
    port = int(broker.address.rpartition(":")[2])

    def draw(console: Console) -> None:
        console.print(f"broker {number} listens on {host}:{port}; ctrl-C stops it")

    return Answer(
        document=lambda: {"id": number, "host": host, "port": port},
        draw=draw,
        as_json=as_json,
    )
