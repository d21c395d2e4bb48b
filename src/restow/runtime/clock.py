"""Time as the cluster sees it: the wall clock for timestamps, a monotonic one for durations."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """A pending callback."""

    def cancel(self) -> None:
        """Cancel the callback. Does nothing after it has run."""


class Clock(Protocol):
    """Tells the time and wakes sleepers. The simulator has its own."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970, for timestamps. May jump when the clock is set."""

    def monotonic_s(self) -> float:
        """Return seconds since some moment, for durations. Never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Sleep for that many seconds; for 0, until the loop's next turn."""

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
