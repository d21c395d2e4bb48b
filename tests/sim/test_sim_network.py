"""The simulated network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.runtime.chance import SeededChance
from restow.sim.clock import NodeClock
from restow.sim.loop import run
from restow.sim.network import SimNetwork

if TYPE_CHECKING:
    from restow.sim.network import NodeNetwork, SimConnection


class Ear:
    """Records the events of a connection."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.over: list[Exception | None] = []
        self.connection: SimConnection | None = None

    def opened(self, connection: SimConnection) -> None:
        self.connection = connection

    def frame(self, payload: bytes) -> None:
        self.heard.append(payload)

    def closed(self, reason: Exception | None) -> None:
        self.over.append(reason)


async def connected() -> tuple[SimNetwork, Ear, Ear, NodeNetwork]:
    network = SimNetwork(SeededChance(0))
    there, here = network.at("there", NodeClock()), network.at("here", NodeClock())
    server, client = Ear(), Ear()
    await there.listen("there", 9092, lambda: server, 1_000)
    await here.connect("there", 9092, client, 5)
    return network, server, client, here


def sent(ear: Ear, *frames: bytes) -> None:
    assert ear.connection is not None
    for frame in frames:
        ear.connection.send(frame)


def test_frames_arrive_in_their_order_and_take_time() -> None:
    async def main() -> None:
        _, server, client, _ = await connected()
        before_s = asyncio.get_running_loop().time()
        sent(client, *(b"%d" % number for number in range(100)))
        assert server.heard == []
        await asyncio.sleep(1)
        assert server.heard == [b"%d" % number for number in range(100)]
        assert asyncio.get_running_loop().time() > before_s

    run(main())


def test_cut_link_delays_frames_until_it_is_mended() -> None:
    async def main() -> None:
        network, server, client, _ = await connected()
        network.cut("here", "there")
        sent(client, b"late")
        sent(server, b"in time")
        await asyncio.sleep(60)
        assert (server.heard, client.heard) == ([], [b"in time"])
        network.mend()
        await asyncio.sleep(1)
        assert server.heard == [b"late"]

    run(main())


def test_connect_is_refused_without_listener_and_times_out_on_cut_link() -> None:
    async def main() -> None:
        network, _, _, here = await connected()
        with pytest.raises(ConnectionRefusedError):
            await here.connect("there", 1, Ear(), 5)
        network.cut("there", "here")
        with pytest.raises(TimeoutError):
            await here.connect("there", 9092, Ear(), 5)

    run(main())


def test_dead_process_resets_connections_and_dead_machine_does_not() -> None:
    async def main() -> tuple[int, int]:
        network, _, client, _ = await connected()
        network.end_process("there")
        await asyncio.sleep(1)
        network, _, other, _ = await connected()
        network.lose_power("there")
        await asyncio.sleep(60)
        return len(client.over), len(other.over)

    assert run(main()) == (1, 0)


def test_too_large_frame_ends_the_connection() -> None:
    async def main() -> None:
        _, server, client, _ = await connected()
        sent(client, b"x" * 2_000)
        await asyncio.sleep(1)
        assert server.heard == []
        assert len(server.over) == len(client.over) == 1

    run(main())


def test_paused_reader_gets_its_frames_when_it_resumes() -> None:
    async def main() -> None:
        _, server, client, _ = await connected()
        assert server.connection is not None
        server.connection.pause_reading()
        sent(client, b"a", b"b")
        await asyncio.sleep(1)
        assert server.heard == []
        server.connection.resume_reading()
        await asyncio.sleep(1)
        assert server.heard == [b"a", b"b"]

    run(main())


def test_data_that_is_held_back_comes_after_data_of_a_later_connection() -> None:
    async def main() -> list[bytes]:
        network, server, client, _ = await connected()
        held = network.hold("here")
        sent(client, b"early")
        await asyncio.sleep(1)
        heard = list(server.heard)
        network.release(held)
        await asyncio.sleep(1)
        return [*heard, b"|", *server.heard]

    assert run(main()) == [b"|", b"early"]
