"""Calls from broker to broker over real connections."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.process import free_ports
from restow.cluster.handlers import HANDLERS, Handler
from restow.cluster.net.peers import Address, Peers
from restow.cluster.net.server import serve
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.wire.messages import ApiVersionsRequest, HeartbeatRequest, HeartbeatResponse
from tests.unit.broker.conversations import HOST, bare_services, run

HEARTBEAT = 12


async def served(port: int = 0) -> Any:
    return await serve(SystemNetwork(), HOST, port, bare_services(SystemClock()))


def peers_at(*ports: int) -> Peers:
    """Broker ids are positions; each call of `locate` looks again."""

    async def locate(broker_id: int) -> Address:
        if broker_id >= len(ports):
            raise ConnectionError(f"broker {broker_id} is not registered")
        return Address(HOST, ports[broker_id])

    return Peers(SystemNetwork(), SystemClock(), locate, client_id="test")


def heartbeat(group: str = "g") -> Any:
    return HeartbeatRequest(group_id=group, generation_id=1, member_id="m")


def test_responses_reach_their_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    async def handle(request: Any, _: Any) -> Any:
        order.append(request.body.group_id)
        return HeartbeatResponse(throttle_time_ms=int(request.body.group_id))

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await served()
        peers = peers_at(listener.port)
        calls = [peers.call(0, HEARTBEAT, 4, heartbeat(str(number))) for number in range(50)]
        answers = await asyncio.gather(*calls)
        assert [answer.throttle_time_ms for answer in answers] == list(range(50))
        assert order == [str(number) for number in range(50)]
        peers.close()
        await listener.close()

    run(scenario())


def test_connection_to_peer_is_closed_after_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handle(request: Any, _: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await served()
        peers = peers_at(listener.port)
        other = asyncio.create_task(peers.call(0, HEARTBEAT, 4, heartbeat()))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await peers.call(0, HEARTBEAT, 4, heartbeat(), timeout_s=0.1)
        with pytest.raises(ConnectionError):
            await other
        again = await peers.call(0, 18, 2, ApiVersionsRequest())
        assert again.api_keys
        peers.close()
        await listener.close()

    run(scenario())


def test_lost_connection_is_opened_again() -> None:
    async def scenario(port: int) -> None:
        listener = await served(port)
        peers = peers_at(port)
        await peers.call(0, 18, 2, ApiVersionsRequest())
        await listener.close()
        calls = [peers.call(0, 18, 2, ApiVersionsRequest()) for _ in range(3)]
        refused = await asyncio.gather(*calls, return_exceptions=True)
        assert {isinstance(each, ConnectionError) for each in refused} == {True}
        listener = await served(port)
        assert (await peers.call(0, 18, 2, ApiVersionsRequest())).api_keys
        peers.close()
        with pytest.raises(ConnectionError):
            await peers.call(0, 18, 2, ApiVersionsRequest())
        await listener.close()

    with free_ports(1) as [port]:
        run(scenario(port))


def test_call_to_unknown_broker_raises_connection_error() -> None:
    async def scenario() -> None:
        with pytest.raises(ConnectionError, match="not registered"):
            await peers_at().call(7, 18, 2, ApiVersionsRequest())

    run(scenario())
