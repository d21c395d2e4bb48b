"""A node's clock: skewed, set at will, or halted while the others go on."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.clock import Timer

EPOCH_MS = 1_700_000_000_000
"""The wall clock at the start of a simulation."""


class NodeClock:
    """Time as one node sees it.

    A halted node (`halt`) gets no timer before `go_on`; then all due timers fire at once in their order, as
    in a process that was stopped and continued.
    """

    def __init__(self, *, skew_ms: int = 0) -> None:
        self._loop = asyncio.get_running_loop()
        self._skew_ms = skew_ms
        self._halted: list[_HeldTimer] | None = None

    @property
    def is_halted(self) -> bool:
        return self._halted is not None

    def now_ms(self) -> int:
        return EPOCH_MS + self._skew_ms + int(self._loop.time() * 1000)

    def monotonic_s(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0 and self._halted is None:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = self._loop.create_future()
        timer = self.call_later(seconds, partial(_wake, woken))
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = _HeldTimer(self, callback)
        timer.handle = self._loop.call_later(max(seconds, 0.0), timer.is_due)
        return timer

    def jump(self, by_ms: int) -> None:
        """Set the wall clock; durations are not touched."""
        self._skew_ms += by_ms

    def halt(self) -> None:
        """Hold back every timer from now on."""
        if self._halted is None:
            self._halted = []

    def go_on(self) -> None:
        """Fire the timers that were held back."""
        held, self._halted = self._halted or [], None
        for timer in held:
            self._loop.call_soon(timer.is_due)

    def hold(self, timer: _HeldTimer) -> bool:
        """Hold back a due timer if the node is halted."""
        if self._halted is None:
            return False
        self._halted.append(timer)
        return True


class _HeldTimer:
    """One timer of a node.

    It lets go of its callback and of the loop's handle, which refers to it, as soon as it needs them no more.
    Else every request would leave a cycle that keeps its response in memory.
    """

    __slots__ = ("_callback", "_clock", "handle")

    def __init__(self, clock: NodeClock, callback: Callable[[], object]) -> None:
        self._clock = clock
        self._callback: Callable[[], object] | None = callback
        self.handle: asyncio.TimerHandle | None = None

    def is_due(self) -> None:
        self.handle = None
        callback = self._callback
        if callback is not None and not self._clock.hold(self):
            self._callback = None
            callback()

    def cancel(self) -> None:
        self._callback = None
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
