"""The limit of incoming connections over all listeners."""

from __future__ import annotations

import asyncio
import resource

import pytest

from restow.runtime.connections import most_connections
from restow.runtime.network import SystemNetwork
from tests.unit.runtime.doors import HOST, MAX_FRAME, Recorder


@pytest.mark.parametrize(
    ("limit", "most"), [(256, 128), (1024, 512), (20_000, 19_360), (resource.RLIM_INFINITY, 1 << 30)]
)
def test_connection_limit_leaves_descriptors_for_files(
    monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert most_connections() == most


def test_connection_above_the_limit_is_closed() -> None:
    """Its handler is not called, and a closed connection makes room again."""

    async def scenario() -> None:
        heard: list[Recorder] = []

        def make() -> Recorder:
            heard.append(Recorder())
            return heard[-1]

        network = SystemNetwork(max_connections=2)
        listeners = [await network.listen(HOST, 0, make, MAX_FRAME) for _ in range(2)]
        clients = []
        for number in range(4):
            clients.append(Recorder())
            await network.connect(HOST, listeners[number % 2].port, clients[-1], 60)
            if number < 2:
                while not (len(heard) > number and heard[number].is_open.is_set()):
                    await asyncio.sleep(0.01)
        for client in clients[2:]:
            await client.is_closed.wait()
        assert [each.is_open.is_set() for each in heard] == [True, True, False, False]
        assert not any(each.times_closed for each in heard)
        clients[0].connection.close()
        await heard[0].is_closed.wait()
        await network.connect(HOST, listeners[0].port, Recorder(), 60)
        while len(heard) == len(clients):
            await asyncio.sleep(0.01)
        await heard[-1].is_open.wait()
        for listener in listeners:
            await listener.close()

    asyncio.run(asyncio.wait_for(scenario(), 300))
