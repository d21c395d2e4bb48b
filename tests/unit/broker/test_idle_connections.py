"""Idle connections are closed; those that wait for a response are not."""

from __future__ import annotations

import asyncio
import socket
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from restow.cluster.broker.settings import server_limits
from restow.cluster.config.configs import BrokerConfigs
from restow.cluster.handlers import HANDLERS, Handler
from restow.cluster.net.idleness import Idle, IdleWatch
from restow.cluster.net.server import ServerLimits, serve
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.wire.codec import encode_request
from restow.wire.messages import ApiVersionsRequest, HeartbeatRequest, HeartbeatResponse
from tests.unit.broker.conversations import HOST, Client, bare_services, run

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from restow.runtime.protocols import Listener

HEARTBEAT = 12


class Hands:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.due: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Any:
        entry = (self.now_s + seconds, callback)
        self.due.append(entry)
        return SimpleNamespace(cancel=lambda: self.due.remove(entry) if entry in self.due else None)

    def move(self, seconds: float) -> None:
        self.now_s += seconds
        while ready := [entry for entry in self.due if entry[0] <= self.now_s]:
            self.due.remove(ready[0])
            ready[0][1]()


async def listening(max_idle_ms: int) -> Listener:
    limits = ServerLimits(max_idle_ms=max_idle_ms)
    return await serve(SystemNetwork(), HOST, 0, bare_services(SystemClock()), limits)


def heartbeat() -> Any:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def test_idle_watch_calls_back_when_the_mark_stays_for_the_limit() -> None:
    hands: Any = Hands()
    mark: list[object] = [0]
    given_up: list[Idle] = []
    watch = IdleWatch(hands, 100, lambda: mark[0], given_up.append)
    for step in range(40):
        mark[0] = step
        hands.move(25)
    mark[0] = None
    hands.move(1000)
    assert not given_up
    mark[0] = "the same"
    for _ in range(4):
        hands.move(25)
    assert not given_up
    hands.move(25)
    assert len(given_up) == 1
    assert "100 s" in str(given_up[0])
    watch.stop()
    assert not hands.due


def test_idle_limits_come_from_the_configs() -> None:
    assert server_limits(BrokerConfigs()) == ServerLimits()
    configs = BrokerConfigs({"connections.max.idle.ms": "-1", "socket.request.max.bytes": "5000"})
    assert server_limits(configs) == ServerLimits(max_idle_ms=-1, max_frame_bytes=5000)


def test_silent_connection_is_closed() -> None:
    async def scenario() -> None:
        listener = await listening(max_idle_ms=40)
        silent, halted = await Client.connect(listener.port), await Client.connect(listener.port)
        halted.connection._transport.write(struct.pack(">i", 1000) + b"the rest never comes")
        await silent.is_closed.wait()
        await halted.is_closed.wait()
        await listener.close()

    run(scenario())


def test_connection_that_waits_for_a_response_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request outlives another connection that is closed for idleness after it began."""
    gate = asyncio.Event()

    async def handle(request: Any, _: Any) -> Any:
        await gate.wait()
        return HeartbeatResponse()

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await listening(max_idle_ms=40)
        waiting = await Client.connect(listener.port)
        waiting.ask(HEARTBEAT, 4, 7, heartbeat())
        for _ in range(3):
            await (await Client.connect(listener.port)).is_closed.wait()
        gate.set()
        assert await waiting.number() == 7
        await listener.close()

    run(scenario())


def test_no_connection_is_closed_without_a_limit() -> None:
    async def scenario() -> None:
        unlimited, limited = await listening(max_idle_ms=-1), await listening(max_idle_ms=20)
        patient = await Client.connect(unlimited.port)
        for _ in range(3):
            await (await Client.connect(limited.port)).is_closed.wait()
        patient.ask(18, 2, 4, ApiVersionsRequest())
        assert await patient.number() == 4
        await limited.close()
        await unlimited.close()

    run(scenario())


def test_connection_that_does_not_read_is_closed_and_its_memory_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handle(request: Any, _: Any) -> Any:
        return (bytes(1_000_000),)

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await listening(max_idle_ms=200)
        loop = asyncio.get_running_loop()
        with socket.create_connection((HOST, listener.port)) as deaf:
            frames = [
                b"".join(encode_request(HEARTBEAT, 3, number, "deaf", heartbeat())) for number in range(60)
            ]
            deaf.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
            members = listener._connections.open  # type: ignore[attr-defined]
            while not members:
                await asyncio.sleep(0.01)
            (connection,) = members
            await connection.gone
            assert connection.unsent_bytes == 0
            deaf.setblocking(False)
            taken = 0
            try:
                while part := await loop.sock_recv(deaf, 1 << 20):
                    taken += len(part)
            except ConnectionResetError:
                pass
            assert taken < 60_000_000
        await listener.close()

    run(scenario())


def test_fetch_waits_until_earlier_responses_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many fetches sent at once, only as many are answered as the client reads."""
    begun = 0

    async def handle(request: Any, _: Any) -> Any:
        nonlocal begun
        begun += 1
        return (bytes(10_000_000),)

    monkeypatch.setitem(HANDLERS, 1, Handler(range(4, 18), handle))
    fetch = struct.pack(">hhih", 1, 4, 9, -1) + struct.pack(">iiiibi", -1, 0, 0, 0, 0, 0)

    async def scenario() -> None:
        listener = await listening(max_idle_ms=-1)
        reader, writer = await asyncio.open_connection(HOST, listener.port, limit=1024)
        writer.write((struct.pack(">i", len(fetch)) + fetch) * 30)
        settled = 0
        while not begun or begun != settled:
            settled = begun
            await asyncio.sleep(0.1)
        assert 1 <= begun <= 3
        for _ in range(30):
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            await reader.readexactly(length)
        assert begun == 30
        writer.close()
        await writer.wait_closed()
        await listener.close()

    run(scenario())
