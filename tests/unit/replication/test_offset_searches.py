"""Long timestamp searches let other tasks run, and only one runs at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.replication import FoundOffset
from restow.cluster.replication.offsets import OffsetSearches
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Generator


def long_search(log: list[str], name: str, turns: int) -> Generator[None, None, FoundOffset]:
    for number in range(turns):
        log.append(f"{name}{number}")
        yield
    return FoundOffset(0, turns)


def test_other_tasks_run_during_a_long_search() -> None:
    async def scenario() -> None:
        log: list[str] = []

        async def other() -> None:
            while len(log) < 300:
                log.append("other")
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        found = await OffsetSearches(SystemClock()).finish(long_search(log, "s", 100))
        assert found == FoundOffset(0, 100)
        assert log.count("other") >= 99
        await beside

    asyncio.run(scenario())


def test_second_long_search_waits_for_the_first() -> None:
    async def scenario() -> None:
        log: list[str] = []
        searches = OffsetSearches(SystemClock())
        await asyncio.gather(
            searches.finish(long_search(log, "a", 3)), searches.finish(long_search(log, "b", 3))
        )
        assert log == ["a0", "b0", "a1", "a2", "b1", "b2"]

    asyncio.run(scenario())


def test_cancelled_search_lets_the_next_one_run() -> None:
    async def scenario() -> None:
        log: list[str] = []
        searches = OffsetSearches(SystemClock())
        first = asyncio.create_task(searches.finish(long_search(log, "a", 10**9)))
        second = asyncio.create_task(searches.finish(long_search(log, "b", 3)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        assert await second == FoundOffset(0, 3)
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(scenario())
