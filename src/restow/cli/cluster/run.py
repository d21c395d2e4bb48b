"""The run of `restow cluster up`, from start to shutdown."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING

from restow.cli.shared.frame import Answer, line, show
from restow.cli.shared.live import show_live
from restow.cli.shared.signals import told_to_stop, unless_told
from restow.client import ConnectionSettings, connected, hush
from restow.errors import BrokerFailed
from restow.runtime.tls import client_context

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from rich.console import Console

    from restow.cluster.broker.broker import BrokerServer
    from restow.cluster.embedded import EmbeddedCluster


async def started(start: Awaitable[None], told: asyncio.Event, port: str) -> bool:
    """Return True once `start` is done, False if a signal came first. `port` names the port in errors."""

    async def done() -> bool:
        await start
        return True

    try:
        return await unless_told(told, done()) or False
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise BrokerFailed(f"{port} is taken: give another --port, or 0 for a free one") from error


_LOOK_EVERY_S = 2.0


async def run_until_told(cluster: EmbeddedCluster, *, as_json: bool) -> None:
    """Start the brokers, show their state live, and shut them down in order at the first signal."""
    with told_to_stop() as told:
        if not await started(cluster.start(), told, "a port of these brokers"):
            return
        try:
            show(_ready(cluster, as_json=as_json))
            if as_json or not sys.stdout.isatty():
                await told.wait()
            else:
                hush()
                async with connected(_own_connection(cluster)) as admin:
                    await show_live(admin, _LOOK_EVERY_S, told=told)
        finally:
            await cluster.stop()


def _own_connection(cluster: EmbeddedCluster) -> ConnectionSettings:
    """Return how this process connects to the cluster: as its brokers do."""
    login, tls = cluster.own_login, cluster.own_tls
    options: dict[str, object] = {
        "security_protocol": f"{'SASL_' if login else ''}{'SSL' if tls else 'PLAINTEXT'}"
    }
    if login is not None:
        options |= {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.user,
            "sasl_plain_password": login.password,
        }
    if tls is not None:
        options |= {"ssl_context": client_context(tls)}
    return ConnectionSettings(bootstrap=cluster.own_bootstrap, options=options)


def _ready(cluster: EmbeddedCluster, *, as_json: bool) -> Answer:
    def draw(console: Console) -> None:
        console.print(f"{len(cluster.brokers)} brokers are up; ctrl-C stops them")
        for name, bootstrap in cluster.listeners.items():
            at = "" if len(cluster.listeners) == 1 else f" of listener {name}"
            console.print(f"bootstrap servers{at}: {bootstrap}", soft_wrap=True)
        if cluster.certificates is not None:
            console.print(f"clients trust: {cluster.certificates.authority}", soft_wrap=True)

    return Answer(document=lambda: _document(cluster), draw=draw, as_json=as_json)


def _document(cluster: EmbeddedCluster) -> dict[str, object]:
    brokers = sorted(cluster.brokers.items())
    return {
        "bootstrap_servers": cluster.bootstrap,
        "listeners": dict(cluster.listeners),
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


async def run_broker(broker: BrokerServer, *, as_json: bool) -> None:
    """Start the broker, print its address, and shut it down in order at the first signal."""
    with told_to_stop() as told:
        options = broker.options
        if not await started(broker.start(), told, f"port {options.port} of {options.host}"):
            return
        show(_broker_ready(broker, as_json=as_json))
        reason = await unless_told(told, broker.until_failed())
        await broker.stop()
        if reason is not None:
            raise BrokerFailed(f"broker {broker.options.broker_id} has ended: {reason}")


def _broker_ready(broker: BrokerServer, *, as_json: bool) -> Answer:
    number, host = broker.options.broker_id, broker.options.host
    port = int(broker.address.rpartition(":")[2])
    text = f"broker {number} listens on {host}:{port}; ctrl-C stops it"
    return line(text, {"id": number, "host": host, "port": port}, as_json=as_json)
