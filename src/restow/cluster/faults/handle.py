"""A fault under way: how often it was met, and how it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.runtime.clock import Clock, Timer

_PATIENCE_S = 30.0


class ClusterFault:
    """One fault on a cluster that runs on this loop.

    It ends with its `with` block, when `end` is called, after `for_s` seconds, or with the cluster. One that
    was made for a number of `times` is used up after them, but keeps what it holds until it ends.
    """

    def __init__(
        self, what: str, clock: Clock, *, times: int | None = None, for_s: float | None = None
    ) -> None:
        if times is not None and times < 1:
            raise InvalidInput(f"A fault happens at least once, not {times} times.")
        if for_s is not None and for_s <= 0:
            raise InvalidInput(f"A fault lasts longer than {for_s:g} seconds.")
        self.hits = 0
        """How often it was met: requests, connections or disk calls."""
        self._what = what
        self._clock = clock
        self._times = times
        self._for_s = for_s
        self._timer: Timer | None = None
        self._over = asyncio.Event()
        self._undo: list[Callable[[], object]] = []
        self._repair: Callable[[], Awaitable[object]] | None = None
        self._repairing: asyncio.Task[object] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def is_repaired(self) -> bool:
        """Whether it has ended and nothing of it is left."""
        return self.is_over and (self._repairing is None or self._repairing.done())

    @property
    def is_used_up(self) -> bool:
        """Whether it has happened as often as it should."""
        return self.is_over or (self._times is not None and self.hits >= self._times)

    def end(self) -> None:
        """End the fault and let go of everything it holds. A second call does nothing.

        Repairs that take a while, as the restart of a broker, go on afterwards; `ended` waits for them.
        """
        if self.is_over:
            return
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()
        for undo in reversed(self._undo):
            undo()
        if self._repair is not None:
            self._repairing = asyncio.ensure_future(self._repair())

    async def ended(self) -> None:
        """Wait until the fault is over and everything is repaired."""
        await self._over.wait()
        if self._repairing is not None:
            await asyncio.shield(self._repairing)

    async def until(self, hits: int = 1, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until the fault was met that often. Raises TimeoutError."""
        if self.hits >= hits:
            return
        met: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((hits, met))
        try:
            async with asyncio.timeout(timeout_s):
                await met
        except TimeoutError:
            raise TimeoutError(
                f"{self._what} was met {self.hits} times within {timeout_s:g} s, not {hits}"
            ) from None

    def __repr__(self) -> str:
        state = "over" if self.is_over else "used up" if self.is_used_up else "active"
        return f"<{self._what}: {state}, {self.hits} hits>"

    def __enter__(self) -> ClusterFault:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    async def __aenter__(self) -> ClusterFault:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end()
        await self.ended()

    # For those who make faults

    def begin(
        self, *undo: Callable[[], object], repair: Callable[[], Awaitable[object]] | None = None
    ) -> ClusterFault:
        """Say how the fault is undone when it ends, and start its time."""
        self._undo += undo
        self._repair = repair
        if self._for_s is not None:
            self._timer = self._clock.call_later(self._for_s, self.end)
        return self

    def hit(self) -> bool:
        """Count one more hit, and return whether the fault is used up by it."""
        self.hits += 1
        for hits, met in self._waiting:
            if self.hits >= hits and not met.done():
                met.set_result(None)
        return self.is_used_up

    async def until_over(self, at_most_s: float | None = None) -> None:
        """Wait until the fault has ended, but not longer than that."""
        if at_most_s is None:
            await self._over.wait()
            return
        timer = self._clock.call_later(at_most_s, (due := asyncio.Event()).set)
        waits = [asyncio.ensure_future(each.wait()) for each in (due, self._over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            for each in waits:
                each.cancel()
