"""Checks that a broker is unharmed after hostile clients."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import psutil

from restow.wire.messages import MetadataRequest
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import pytest

    from restow.cluster.embedded import EmbeddedCluster

MEGABYTE = 1024 * 1024
_METADATA = 3


def port_of(cluster: EmbeddedCluster, broker_id: int = 0) -> int:
    return int(cluster.brokers[broker_id].address.rpartition(":")[2])


def memory() -> int:
    """Return the resident bytes."""
    gc.collect()
    return psutil.Process().memory_info().rss


@asynccontextmanager
async def unharmed(
    cluster: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
    *,
    most_grown: int = 64 * MEGABYTE,
    more_files: int = 0,
) -> AsyncIterator[Client]:
    """Check that another client is served meanwhile. Afterwards there are no more tasks, connections and
    files than before (except those of new topics), memory has not grown by more, and no error was logged.
    """
    process, loop = psutil.Process(), asyncio.get_running_loop()
    reported: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))
    bystander = await Client.connect(port_of(cluster))
    await still_served(bystander)
    tasks, sockets, held = len(asyncio.all_tasks()), _sockets(), memory()
    descriptors = process.num_fds() + more_files
    try:
        yield bystander
        await still_served(bystander)
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        await until(lambda: _sockets() <= sockets and process.num_fds() <= descriptors)
        grown = memory() - held
        assert grown < most_grown, f"memory grew by {grown / MEGABYTE:.0f} MB"
    finally:
        bystander.connection.close()
        await bystander.is_closed.wait()
        loop.set_exception_handler(None)
    gc.collect()
    assert not reported, reported[0]
    failed = [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert not failed, failed[0].exc_text or failed[0].getMessage()


def _sockets() -> int:
    return len(psutil.Process().net_connections("tcp"))


async def still_served(client: Client) -> None:
    client.ask(_METADATA, 9, 77, MetadataRequest(topics=[], allow_auto_topic_creation=False))
    assert await client.number() == 77


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the scenario's limit ends the wait."""
    while not condition():
        await asyncio.sleep(0.02)
