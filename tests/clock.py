"""Clocks for tests: time passes when the test advances it, or when the code under test sleeps."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TURNS = 40
_CLOSE_S = 1e-6
"""Sums of tenths of seconds are not exact: a timer so close to the end of an advance is due."""


async def settle() -> None:
    """Let all tasks run as far as they can without time passing."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class HandTimer:
    """A callback, or None when it was cancelled."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class HandClock:
    """Time stands still until the test advances it; timers that are due meanwhile are called in order."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s
        self._timers: list[tuple[float, int, HandTimer]] = []
        self._ticket = count()

    def now_ms(self) -> int:
        return round(self.now_s * 1000)

    def monotonic_s(self) -> float:
        return self.now_s

    def call_later(self, seconds: float, callback: Callable[[], object]) -> HandTimer:
        timer = HandTimer(callback)
        heappush(self._timers, (self.now_s + max(seconds, 0.0), next(self._ticket), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: done.done() or done.set_result(None))
        try:
            await done
        finally:
            timer.cancel()

    async def advance(self, seconds: float) -> None:
        """Advance the clock. All tasks run as far as they can before and after each timer."""
        await settle()
        for _ in self._called_until(self.now_s + seconds):
            await settle()

    def advance_at_once(self, seconds: float) -> None:
        """Advance the clock and call timers, but let no task run."""
        list(self._called_until(self.now_s + seconds))

    @property
    def waiting(self) -> int:
        """Return the number of pending timers."""
        return sum(timer.callback is not None for _, _, timer in self._timers)

    def _called_until(self, until_s: float) -> Iterator[None]:
        while self._timers and self._timers[0][0] <= until_s + _CLOSE_S:
            at_s, _, timer = heappop(self._timers)
            if timer.callback is not None:
                self.now_s = max(self.now_s, at_s)
                timer.callback()
                yield
        self.now_s = max(self.now_s, until_s)


class SleepingClock(HandClock):
    """A sleep takes no time: it advances the clock and tells `on_tick` by how much."""

    def __init__(self, now_s: float = 1_000_000.0) -> None:
        super().__init__(now_s)
        self.on_tick: list[Callable[[float], None]] = []

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for each in tuple(self.on_tick):
            each(seconds)
