"""Listen: on loopback, or with TLS on any address."""

from __future__ import annotations

import asyncio
import errno
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn

from restow.errors import InvalidInput, RestowError
from restow.runtime.clock import SystemClock
from restow.runtime.memory import keep_no_large_blocks
from restow.runtime.ports import is_loopback, listening_socket
from restow.ui.app import application
from restow.ui.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.ui.commands import CommandLine
    from restow.ui.safety import Guard
    from restow.ui.site import UiSettings
    from restow.ui.watching import WatchedCluster

_MOST_CONNECTIONS = 1_000
_MOST_HEADER_BYTES = 32 * 1024
_LAST_WORDS_S = 2


class CannotListen(RestowError):
    """The address is taken, or is not of this machine."""


class Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def check_address(settings: UiSettings) -> None:
    """Refuse an address that others can reach, unless the connection is encrypted."""
    if settings.tls != (settings.key is not None):
        raise InvalidInput("--tls-certificate and --tls-key belong together: give both, or none")
    if not settings.tls and not is_loopback(settings.host):
        raise InvalidInput(
            f"--host: {settings.host!r} can be reached from other machines, so tokens have to be encrypted: "
            "give --tls-certificate and --tls-key, or use 127.0.0.1 (and an SSH tunnel)"
        )


async def serve(
    settings: UiSettings,
    source: WatchedCluster,
    ready: Callable[[UiSettings], object],
    told: asyncio.Event,
    commands: CommandLine | None = None,
) -> None:
    """Serve until `told` to stop. `ready` is called once we listen, with the port that we got."""
    check_address(settings)
    keep_no_large_blocks()
    try:
        listener = listening_socket(settings.host.strip("[]"), settings.port)
    except OSError as error:
        taken = "is another server there? --port 0 takes a free one"
        why = taken if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise CannotListen(f"{settings.host}:{settings.port} cannot be used: {why}") from error
    with listener:
        settings = replace(settings, port=listener.getsockname()[1])
        site = Site(settings, source, SystemClock(), commands)
        server = Server(_config(settings, application(site)))
        stopping = asyncio.create_task(_stop(told, server, site))
        ready(settings)
        try:
            await server.serve(sockets=[listener])
        finally:
            stopping.cancel()


async def _stop(told: asyncio.Event, server: Server, site: Site) -> None:
    await told.wait()
    site.feeds.end()
    server.should_exit = True


def _config(settings: UiSettings, app: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http="h11",
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
        timeout_graceful_shutdown=_LAST_WORDS_S,
    )
