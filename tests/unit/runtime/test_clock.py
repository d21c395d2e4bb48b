"""The machine's clock."""

from __future__ import annotations

import asyncio
import time

from restow.runtime.clock import Clock, SystemClock


def test_system_clock_tells_the_time() -> None:
    clock: Clock = SystemClock()
    before = time.time_ns() // 1_000_000
    assert before <= clock.now_ms() <= time.time_ns() // 1_000_000
    assert clock.monotonic_s() <= clock.monotonic_s()


def test_sleepers_wake_in_order() -> None:
    async def scenario() -> list[str]:
        clock = SystemClock()
        woken: list[str] = []

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        await asyncio.gather(sleeper("late", 0.5), sleeper("soon", 0.01), sleeper("now", 0))
        return woken

    assert asyncio.run(scenario()) == ["now", "soon", "late"]


def test_timers_ring_unless_cancelled() -> None:
    async def scenario() -> list[str]:
        clock = SystemClock()
        rung: list[str] = []
        done = asyncio.get_running_loop().create_future()
        cancelled = clock.call_later(0.01, lambda: rung.append("cancelled"))
        past = clock.call_later(-1, lambda: rung.append("past"))
        clock.call_later(0.03, lambda: done.set_result(None))
        cancelled.cancel()
        await done
        past.cancel()
        return rung

    assert asyncio.run(scenario()) == ["past"]
