"""Connecting: what cannot be an address, and what is left when nobody answers."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from harness.process import free_ports
from restow.client import Settings, Unreachable, connected, link
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

# kafka-python leaves a socket whose connection was refused to the collector, who complains of it.


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Now, and not in the middle of somebody else's test."""
    yield
    gc.collect()


async def connect(bootstrap: str) -> None:
    async with connected(Settings(bootstrap=bootstrap, connect_timeout_s=0.5)):
        raise AssertionError("somebody answered")


@pytest.mark.parametrize(
    "bootstrap",
    ["", ",", "a:1,", ":9092", "a:", "a:b", "a:0", "a:65536", "a:-1", "a:9092 b:9092", "a:٣", "[::1]:x"],
)
def test_what_is_no_address_is_told_at_once(bootstrap: str) -> None:
    with pytest.raises(InvalidInput, match="is not HOST:PORT"):
        asyncio.run(connect(bootstrap))


@pytest.mark.parametrize("second", ["", ", localhost:1"])
def test_nobody_answers_and_nothing_is_left(second: str) -> None:
    with free_ports(1) as [port], pytest.raises(Unreachable, match="does not answer"):
        asyncio.run(connect(f"127.0.0.1:{port}{second}"))
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")] == []


def test_a_single_server_that_said_nothing_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may stand still for longer than a connection takes."""
    asked: list[str] = []
    really_connect = link._connect

    def watched(settings: Settings) -> Any:
        asked.append(settings.bootstrap)
        return really_connect(settings)

    monkeypatch.setattr(link, "_connect", watched)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match="does not answer"):
            asyncio.run(connect(address))
    assert asked == [address, address]


def test_whoever_answers_with_tls_is_recognised() -> None:
    """What a TLS server says to a client that does not greet it: a fatal alert."""
    alert = b"\x15\x03\x03\x00\x02\x02\x50"
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer_all, args=(server, alert))
        answering.start()
        try:
            with pytest.raises(Unreachable, match=r"if it wants TLS, say so with --command-config"):
                asyncio.run(connect(f"127.0.0.1:{server.getsockname()[1]}"))
        finally:
            server.shutdown(socket.SHUT_RDWR)
            answering.join()


def _answer_all(server: socket.socket, answer: bytes) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(answer)
            while connection.recv(4096):
                pass
