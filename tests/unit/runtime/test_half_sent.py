"""Incomplete frames take a limited amount of memory over all connections."""

from __future__ import annotations

import asyncio
import struct

from restow.runtime.connections import HalfSent, TooMuchHalfSent
from tests.unit.runtime.doors import Door

KILOBYTE = 1024


class Someone:
    def __init__(self) -> None:
        self.reason: Exception | None = None

    def abort(self, reason: Exception | None) -> None:
        self.reason = reason


def test_connection_with_most_incomplete_bytes_is_closed() -> None:
    half_sent = HalfSent(100)
    small, large, late = Someone(), Someone(), Someone()
    half_sent.note(small, 30)
    half_sent.note(large, 60)
    half_sent.note(late, 10)
    assert half_sent.total_bytes == 100
    assert large.reason is None
    half_sent.note(late, 11)
    assert isinstance(large.reason, TooMuchHalfSent)
    assert (small.reason, late.reason) == (None, None)
    assert half_sent.total_bytes == 41
    half_sent.note(large, 0)
    half_sent.note(small, 0)
    half_sent.note(late, 0)
    assert half_sent.total_bytes == 0


def test_frame_above_the_total_limit_closes_its_own_connection() -> None:
    half_sent = HalfSent(100)
    alone = Someone()
    half_sent.note(alone, 101)
    assert alone.reason is not None
    assert half_sent.total_bytes == 0


def test_incomplete_frames_are_limited_and_other_clients_served() -> None:
    async def scenario() -> None:
        most = 1000 * KILOBYTE
        async with Door(max_half_sent_bytes=most) as door:
            raws = []
            for _ in range(8):
                raw, handler = await door.knock()
                raws.append((raw, handler))
                await asyncio.to_thread(
                    raw.sendall, struct.pack(">i", 900 * KILOBYTE) + bytes(300 * KILOBYTE)
                )
            half_sent = door.network._half_sent
            while sum(handler.is_closed.is_set() for _, handler in raws) < 5:
                await asyncio.sleep(0.01)
            assert half_sent.total_bytes <= most
            assert all(
                isinstance(handler.reason, TooMuchHalfSent)
                for _, handler in raws
                if handler.is_closed.is_set()
            )
            connection, _ = await door.connect()
            connection.send(bytes(200 * KILOBYTE))
            (frame,) = await door.came[-1].until(1)
            assert len(frame) == 200 * KILOBYTE
            for raw, _ in raws:
                raw.close()
            for _, handler in raws:
                await handler.is_closed.wait()
            while half_sent.total_bytes:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 300))
