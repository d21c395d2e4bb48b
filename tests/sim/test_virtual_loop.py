"""The virtual event loop and the nodes' clocks."""

from __future__ import annotations

import asyncio

import pytest

from restow.sim.clock import EPOCH_MS, NodeClock
from restow.sim.loop import NothingLeftToDo, run


def test_loop_jumps_to_the_next_timer() -> None:
    async def main() -> float:
        await asyncio.sleep(3_600)
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(3_600)


def test_loop_raises_on_deadlock() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NothingLeftToDo):
        run(main())


def test_loop_has_no_threads() -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="thread"):
        run(main())


def test_halted_clock_holds_back_timers() -> None:
    async def main() -> list[tuple[str, float]]:
        loop, clock, other, woken = asyncio.get_running_loop(), NodeClock(), NodeClock(), []

        async def sleeper(name: str, by: NodeClock) -> None:
            await by.sleep(1)
            woken.append((name, round(loop.time(), 3)))

        clock.halt()
        tasks = [asyncio.create_task(sleeper("halted", clock)), asyncio.create_task(sleeper("other", other))]
        await asyncio.sleep(10)
        clock.go_on()
        await asyncio.gather(*tasks)
        return woken

    assert run(main()) == [("other", 1.0), ("halted", 10.0)]


def test_setting_the_clock_does_not_change_durations() -> None:
    async def main() -> tuple[int, float]:
        clock = NodeClock()
        clock.jump(-3_600_000)
        await clock.sleep(5)
        return clock.now_ms() - EPOCH_MS, clock.monotonic_s()

    assert run(main()) == (-3_595_000, pytest.approx(5))
