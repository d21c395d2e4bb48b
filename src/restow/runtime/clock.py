"""Time as the cluster sees it: the wall clock for timestamps, a monotonic one for durations."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """A callback that has not happened yet."""

    def cancel(self) -> None:
        """Let it not happen. Nothing, if it already did."""


class Clock(Protocol):
    """What tells the time and wakes sleepers. The simulator has one of its own."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, for timestamps. May jump when somebody sets the clock."""

    def monotonic_s(self) -> float:
        """Seconds since some moment, for durations. Never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Come back after that many seconds; at the next turn of the loop if there are none."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back on the loop after that many seconds."""


class SystemClock:
    """The machine's clock and the running loop's timers."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), callback)
