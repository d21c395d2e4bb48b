"""A live table of the cluster: redrawn on a terminal, one line per change elsewhere."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from restow.cli.cluster.status_view import read_status, status_view
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import console, show_document
from restow.cli.shared.signals import told_to_stop
from restow.client import ClientError

if TYPE_CHECKING:
    from restow.cli.cluster.status_view import Status
    from restow.client import KafkaAdmin


async def show_live(
    admin: KafkaAdmin, seconds: float, *, as_json: bool = False, told: asyncio.Event | None = None
) -> None:
    """Show the status until ctrl-C, or until `told` is set."""
    if told is not None:
        await _show(admin, seconds, told, as_json=as_json)
        return
    with told_to_stop() as event:
        await _show(admin, seconds, event, as_json=as_json)


async def _show(admin: KafkaAdmin, seconds: float, told: asyncio.Event, *, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        await _lines(admin, seconds, told, as_json=as_json)
        return
    from rich.live import Live

    with Live(console=console(), auto_refresh=False) as live:
        while not told.is_set():
            try:
                live.update(status_view(await read_status(admin)), refresh=True)
            except ClientError as error:
                live.update(clean(str(error)), refresh=True)
            await _pause(told, seconds)


async def _lines(admin: KafkaAdmin, seconds: float, told: asyncio.Event, *, as_json: bool) -> None:
    """Print a line when the status changes, so that a log does not repeat itself."""
    last: Status | None = None
    while not told.is_set():
        status = await read_status(admin)
        if last is None or _without_sizes(status) != _without_sizes(last):
            if as_json:
                show_document(status.document())
            else:
                sys.stdout.write(_sentence(status) + "\n")
                sys.stdout.flush()
        last = status
        await _pause(told, seconds)


def _without_sizes(status: Status) -> object:
    lines = [
        (line.id, line.address, line.is_controller, line.leaders, line.in_sync) for line in status.brokers
    ]
    return lines, status.topics, status.partitions, status.under_replicated, status.offline


def _sentence(status: Status) -> str:
    up = sum(line.address is not None for line in status.brokers)
    return (
        f"{up} of {len(status.brokers)} brokers up, {status.topics} topics, {status.partitions} partitions, "
        f"{status.under_replicated} under-replicated, {status.offline} offline"
    )


async def _pause(told: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await told.wait()
    except TimeoutError:
        return
