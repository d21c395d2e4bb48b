"""Connecting: invalid addresses, and what is left when no server answers."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka.errors import NodeNotReadyError
from kafka.net.manager import KafkaConnectionManager

from harness.process import free_ports
from restow.client import ConnectionSettings, Unreachable, connected
from restow.client import bootstrap as client_bootstrap
from restow.client.bootstrap import Attempt
from restow.client.link import Link
from restow.client.sockets import SocketTransport
from restow.cluster.embedded import EmbeddedCluster
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

# kafka-python leaves a refused socket to the garbage collector, which warns of it.


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    yield
    gc.collect()


async def connect(bootstrap: str, patience_s: float = 0.5) -> None:
    async with connected(ConnectionSettings(bootstrap=bootstrap, connect_timeout_s=patience_s)):
        raise AssertionError("somebody answered")


@pytest.mark.parametrize(
    "bootstrap",
    ["", ",", "a:1,", ":9092", "a:", "a:b", "a:0", "a:65536", "a:-1", "a:9092 b:9092", "a:٣", "[::1]:x"],
)
def test_invalid_address_is_refused_at_once(bootstrap: str) -> None:
    with pytest.raises(InvalidInput, match="is not HOST:PORT"):
        asyncio.run(connect(bootstrap))


@pytest.mark.parametrize("second", ["", ", localhost:1"])
def test_connect_leaves_nothing_behind_when_no_server_answers(second: str) -> None:
    with free_ports(1) as [port], pytest.raises(Unreachable, match="does not answer"):
        asyncio.run(connect(f"127.0.0.1:{port}{second}"))
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")] == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("servers", [1, 3])
def test_connect_reports_refused_ports_without_waiting_for_the_timeout(host: str, servers: int) -> None:
    """With a timeout of an hour, only an immediate answer passes."""
    with free_ports(servers) as ports:
        bootstrap = ",".join(f"{host}:{port}" for port in ports)
        with pytest.raises(Unreachable, match="ECONNREFUSED") as caught:
            asyncio.run(connect(bootstrap, patience_s=3600))
        assert all(str(port) in str(caught.value) for port in ports)


def test_connect_gives_a_name_that_does_not_resolve_few_tries() -> None:
    with pytest.raises(Unreachable, match="DNS"):
        asyncio.run(connect("no-such-host.invalid:9092", patience_s=3600))


def test_connect_does_not_wait_for_a_silent_server_beside_others_that_refuse() -> None:
    """The silent one gets its time; then all of them are named."""
    with socket.create_server(("127.0.0.1", 0)) as silent, free_ports(1) as [port]:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{port}"
        with pytest.raises(Unreachable, match=r"Unable to bootstrap|timed out") as caught:
            asyncio.run(connect(bootstrap))
        assert "ECONNREFUSED" in str(caught.value)


def test_connect_ends_its_thread_at_once_when_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own thread closes the connection: closed by another, it may sleep forever."""
    closed_by: list[str] = []
    close = KafkaConnectionManager.close

    def watched(manager: KafkaConnectionManager, *given: Any, **named: Any) -> None:
        closed_by.append(threading.current_thread().name)
        close(manager, *given, **named)

    monkeypatch.setattr(KafkaConnectionManager, "close", watched)

    async def main(server: socket.socket) -> None:
        server.setblocking(False)
        connecting = asyncio.create_task(connect(f"127.0.0.1:{server.getsockname()[1]}", patience_s=3600))
        accepted, _ = await asyncio.get_running_loop().sock_accept(server)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        accepted.close()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(main(silent))
    assert closed_by[0].startswith("kafka-io")
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")] == []


def test_connect_keeps_one_client_where_several_servers_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_bootstrap, "_LONG_S", 0.0)

    async def main() -> None:
        async with (
            EmbeddedCluster(3) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            assert len((await admin.describe_cluster()).nodes) == 3
            async with asyncio.timeout(120):
                while sum(each.name.startswith("kafka-io") for each in threading.enumerate()) > 1:
                    await asyncio.sleep(0.01)

    asyncio.run(main())
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")] == []


class NeverReady:
    """Connections of the library of which every attempt fails after a while; its times are recorded."""

    def __init__(self) -> None:
        self.given_ms: list[int] = []
        self.cluster = SimpleNamespace(broker_metadata=lambda _: object())

    def run(self, send: Callable[[], Coroutine[Any, Any, object]]) -> object:
        with suppress(StopIteration):
            send().send(None)
        time.sleep(0.1)
        raise NodeNotReadyError

    def send(self, _: object, *, node_id: int, request_timeout_ms: int) -> object:
        assert node_id == 1
        self.given_ms.append(request_timeout_ms)
        return asyncio.sleep(0)


def test_ask_shares_one_timeout_among_all_retries() -> None:
    manager = NeverReady()
    settings = ConnectionSettings(bootstrap="h:1", timeout_s=3)
    link = Link(SocketTransport(SimpleNamespace(_manager=manager), settings), settings.timeout_s)
    with pytest.raises(Unreachable, match="broker 1"):
        asyncio.run(link.ask(object(), 1))
    assert manager.given_ms[0] <= 3000
    assert manager.given_ms == sorted(set(manager.given_ms), reverse=True)


def test_single_silent_server_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may stall for longer than a connection takes."""
    asked: list[str] = []
    really_connect = Attempt._connect

    def watched(attempt: Attempt) -> Any:
        asked.append(attempt._server)
        return really_connect(attempt)

    monkeypatch.setattr(Attempt, "_connect", watched)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match="does not answer"):
            asyncio.run(connect(address))
    assert asked == [address, address]


def test_server_that_answers_with_tls_is_recognized() -> None:
    """A TLS server answers a client without a greeting with a fatal alert."""
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
