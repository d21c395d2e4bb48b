"""TCP on both loops: frames there and back, and peers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

import pytest

from restow.runtime.network import BadFrame, SlowReader
from restow.runtime.ports import HeldPort
from tests.unit.runtime.doors import HOST, MAX_FRAME, Door, Recorder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[None]]], None]:
    """Run a scenario on a loop of either kind, for at most five minutes, so that a hang fails."""
    if request.param == "uvloop" and sys.platform == "win32":
        pytest.skip("uvloop is not there on Windows")

    def run_scenario(scenario: Callable[[], Awaitable[None]]) -> None:
        factory: Any = None
        if request.param == "uvloop":
            import uvloop

            factory = uvloop.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(scenario(), 300))

    return run_scenario


def echo(handler: Recorder, payload: bytes) -> None:
    handler.connection.send(payload)


def test_frames_of_all_sizes_go_there_and_back(run: Any) -> None:
    sizes = [0, 1, 3, 4095, 4096, 65531, 65532, 65533, 65536, 200_000, MAX_FRAME, 0, 5]
    frames = [bytes([n]) * size for n, size in enumerate(sizes)]

    async def scenario() -> None:
        async with Door(echo) as door:
            connection, client = await door.connect()
            for frame in frames:
                connection.send(frame[:2], memoryview(frame)[2:7], bytearray(frame[7:]))
                await connection.drain()
            assert await client.until(len(frames)) == frames
            assert door.came[0].frames == frames
            assert connection.peer == f"{HOST}:{door.listener.port}"
            connection.close()
            await client.is_closed.wait()
            await door.came[0].is_closed.wait()
            assert (client.reason, door.came[0].reason) == (None, None)

    run(scenario)


def test_many_small_frames_keep_their_order(run: Any) -> None:
    frames = [struct.pack(">i", n) * (n % 7) for n in range(20_000)]

    async def scenario() -> None:
        async with Door(echo) as door:
            connection, client = await door.connect()
            for frame in frames:
                connection.send(frame)
            assert await client.until(len(frames)) == frames
            connection.close()

    run(scenario)


def test_small_and_large_frames_keep_their_order(run: Any) -> None:
    frames = [bytes([n % 251]) * (n * 37 % 9000) for n in range(500)]

    async def scenario() -> None:
        async with Door(echo) as door:
            connection, client = await door.connect()
            for number, frame in enumerate(frames):
                connection.send(frame)
                if number % 50 == 0:
                    await asyncio.sleep(0)
            assert await client.until(len(frames)) == frames

    run(scenario)


def test_small_frames_count_as_unsent_until_they_are_sent(run: Any) -> None:
    async def scenario() -> None:
        async with Door() as door:
            connection, _client = await door.connect()
            connection.send(b"abc")
            assert connection.unsent_bytes == 7
            await connection.drain()
            assert connection.unsent_bytes == 0
            assert await door.came[0].until(1) == [b"abc"]
            connection.send(b"last")
            connection.close()
            assert await door.came[0].until(2) == [b"abc", b"last"]

    run(scenario)


@pytest.mark.parametrize("length", [-1, -(2**31), MAX_FRAME + 1, 2**31 - 1])
def test_invalid_length_closes_only_its_connection(run: Any, length: int) -> None:
    async def scenario() -> None:
        async with Door(echo) as door:
            connection, client = await door.connect()
            raw, victim = await door.knock()
            with raw:
                raw.sendall(struct.pack(">i3s", 3, b"abc") + struct.pack(">i", length) + b"more")
                await victim.is_closed.wait()
            assert victim.frames == [b"abc"]
            assert isinstance(victim.reason, BadFrame)
            assert victim.times_closed == 1
            connection.send(b"still there")
            assert await client.until(1) == [b"still there"]

    run(scenario)


@pytest.mark.parametrize(
    "begun", [b"\x00", struct.pack(">i", 10) + b"123", struct.pack(">i", 500_000) + b"1"]
)
def test_close_in_the_middle_of_a_frame_is_an_error(run: Any, begun: bytes) -> None:
    async def scenario() -> None:
        async with Door() as door:
            raw, victim = await door.knock()
            raw.sendall(begun)
            raw.shutdown(socket.SHUT_WR)
            await victim.is_closed.wait()
            raw.close()
            assert isinstance(victim.reason, BadFrame)
            assert "in the middle of a frame" in str(victim.reason)

    run(scenario)


def test_reset_is_passed_to_closed(run: Any) -> None:
    async def scenario() -> None:
        async with Door() as door:
            raw, victim = await door.knock()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.close()
            await victim.is_closed.wait()
            assert victim.reason is None or isinstance(victim.reason, OSError)
            assert victim.times_closed == 1

    run(scenario)


def test_peer_that_does_not_read_is_closed_above_the_limit(run: Any) -> None:
    chunk = b"x" * 500_000

    async def scenario() -> None:
        async with Door(high_water_bytes=100_000, max_unsent_bytes=3_000_000) as door:
            raw, slow = await door.knock()
            with raw:
                while slow.connection.unsent_bytes <= 3_000_000:
                    slow.connection.send(chunk)
                waiting = asyncio.ensure_future(slow.connection.drain())
                await asyncio.sleep(0.02)
                assert not waiting.done()
                assert not slow.is_closed.is_set()
                while not slow.is_closed.is_set():  # the kernel may have taken some more meanwhile
                    slow.connection.send(chunk)
                    await asyncio.sleep(0.001)
                await waiting
            assert isinstance(slow.reason, SlowReader)
            assert "bytes unread" in str(slow.reason)
            slow.connection.send(b"dropped")
            assert slow.connection.unsent_bytes == 0

    run(scenario)


def test_drain_ends_when_the_peer_reads(run: Any) -> None:
    async def scenario() -> None:
        async with Door(high_water_bytes=100_000) as door:
            raw, sender = await door.knock()
            with raw:
                while sender.connection.unsent_bytes <= 100_000:
                    sender.connection.send(b"x" * 100_000)
                waiting = asyncio.ensure_future(sender.connection.drain())
                raw.setblocking(False)
                while not waiting.done():
                    with contextlib.suppress(BlockingIOError):
                        raw.recv(1 << 20)
                    await asyncio.sleep(0)
                await sender.connection.drain()

    run(scenario)


def test_pause_holds_back_received_frames(run: Any) -> None:
    def pause_at_second(handler: Recorder, _: bytes) -> None:
        if len(handler.frames) == 2:
            handler.connection.pause_reading()

    async def scenario() -> None:
        async with Door(pause_at_second) as door:
            connection, _client = await door.connect()
            frames = [bytes([n]) * 30_000 for n in range(20)]
            for frame in frames:
                connection.send(frame)
            await connection.drain()
            server = door.came[0]
            await server.until(2)
            await asyncio.sleep(0.05)
            assert server.frames == frames[:2]
            server.connection.resume_reading()
            server.connection.resume_reading()
            assert server.frames == frames[:2], "nothing is delivered from within the call"
            assert await server.until(20) == frames

    run(scenario)


def test_pause_right_after_resume_holds(run: Any) -> None:
    async def scenario() -> None:
        async with Door() as door:
            connection, _client = await door.connect()
            server = door.came[0]
            server.connection.pause_reading()
            server.connection.resume_reading()
            server.connection.pause_reading()
            connection.send(b"one")
            await asyncio.sleep(0.05)
            assert server.frames == []
            server.connection.resume_reading()
            assert await server.until(1) == [b"one"]

    run(scenario)


def test_close_sends_queued_frames_and_delivers_no_more(run: Any) -> None:
    def answer_and_close(handler: Recorder, _: bytes) -> None:
        handler.connection.send(b"y" * 900_000)
        handler.connection.close()
        handler.connection.send(b"dropped")

    async def scenario() -> None:
        async with Door(answer_and_close) as door:
            connection, client = await door.connect()
            connection.send(b"first")
            connection.send(b"second")
            await client.is_closed.wait()
            assert client.frames == [b"y" * 900_000]
            assert door.came[0].frames == [b"first"]

    run(scenario)


def test_exception_in_handler_closes_its_connection(run: Any) -> None:
    def fail(_: Recorder, payload: bytes) -> None:
        if payload == b"bad":
            raise KeyError("no such thing")

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        async with Door(fail) as door:
            connection, client = await door.connect()
            connection.send(b"good")
            connection.send(b"bad")
            connection.send(b"never")
            await client.is_closed.wait()
            await door.came[0].is_closed.wait()
            assert door.came[0].frames == [b"good", b"bad"]
            assert isinstance(door.came[0].reason, KeyError)
            assert door.came[0].times_closed == 1

    run(scenario)


def test_connect_and_listen_raise_for_unused_and_taken_ports(run: Any) -> None:
    held = HeldPort(HOST)

    async def scenario() -> None:
        async with Door(port=held.number) as door:
            port = door.listener.port
            with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
                await door.network.listen(HOST, port, Recorder, MAX_FRAME)
            with pytest.raises(TimeoutError):
                await door.network.connect(HOST, port, Recorder(), 0)
        with pytest.raises(ConnectionRefusedError):
            await door.network.connect(HOST, port, Recorder(), 60)
        again = await door.network.listen(HOST, port, Recorder, MAX_FRAME)
        assert (again.host, again.port) == (HOST, port)
        await again.close()

    try:
        run(scenario)
    finally:
        held.let_go()


def test_closing_a_listener_closes_its_connections(run: Any) -> None:
    async def scenario() -> None:
        door = await Door().__aenter__()
        _, reader = await door.connect()
        raw, stuck = await door.knock()
        with raw:
            while not stuck.connection.unsent_bytes:
                stuck.connection.send(b"x" * 500_000)
            await door.listener.close()
            assert [handler.times_closed for handler in door.came] == [1, 1]
        await reader.is_closed.wait()
        await door.listener.close()

    run(scenario)


@pytest.mark.parametrize("turn", range(10))
def test_connection_during_close_of_listener_is_closed(run: Any, turn: int) -> None:
    async def scenario() -> None:
        door = await Door().__aenter__()
        closing = asyncio.create_task(door.listener.close())
        for _ in range(turn):
            await asyncio.sleep(0)
        with contextlib.suppress(OSError), socket.create_connection((HOST, door.listener.port), 30) as raw:
            assert await asyncio.to_thread(raw.recv, 1) == b""
        await closing

    run(scenario)
    gc.collect()  # a connection without an owner causes a warning
