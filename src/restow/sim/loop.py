"""An event loop whose time is virtual.

There is no selector and no socket: when nothing is ready, the clock jumps to the next timer. So a run depends
only on what was scheduled, and an hour of it takes as long as computing its events.
"""

from __future__ import annotations

import asyncio
import gc
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from restow.errors import RestowError
from restow.runtime.loop import rare_garbage_collection

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

_LOOK_FOR_GARBAGE_EVERY = (300_000, 10, 10)
"""Thresholds of the garbage collector. Most objects of a run live until its end or leave no cycle, so that
looking for garbage finds little.
"""


class NothingLeftToDo(RestowError):
    """A deadlock: no callback is ready and no timer is set."""


class _Call:
    """A scheduled callback; asyncio's own handles do the same but cost a simulation a fifth of its time.

    It runs in the loop's own context and not in a copy of the caller's: nothing that is simulated sets
    context variables.
    """

    __slots__ = ("args", "callback")

    callback: Callable[..., object] | None
    """None once it is cancelled. It stays among the timers until its time, and keeps nothing alive there."""
    args: tuple[Any, ...]

    def cancel(self) -> None:
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.callback is None


def _call(callback: Callable[..., object], args: tuple[Any, ...], new: Any = object.__new__) -> _Call:
    """Make one, faster than by a constructor."""
    call: _Call = new(_Call)
    call.callback, call.args = callback, args
    return call


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's tasks and futures on a clock that jumps."""

    _ready: deque[Any]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._timers: list[tuple[float, int, _Call]] = []
        self._numbers = count()
        self.set_debug(False)
        self.get_debug = bool  # type: ignore[method-assign]  # every future asks, and this is no Python call

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._now_s

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: object = None,  # noqa: ARG002
    ) -> _Call:
        call = _call(callback, args)
        self._ready.append(call)
        return call

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: object = None,  # noqa: ARG002
    ) -> _Call:
        call = _call(callback, args)
        heappush(self._timers, (when, next(self._numbers), call))
        return call

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: object = None,  # noqa: ARG002
    ) -> _Call:
        call = _call(callback, args)
        heappush(self._timers, (self._now_s + delay, next(self._numbers), call))
        return call

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: object = None,  # noqa: ARG002
    ) -> asyncio.Task[T]:
        """Make a task without what asyncio checks first: there is no task factory, and the loop is open."""
        return asyncio.Task(coro, loop=self, name=name)

    def _run_once(self) -> None:
        """Run what is ready, or jump to the next timers, until the loop is told to stop.

        Calls run in the order in which they became ready, and timers of one moment in the order in which they
        were set.
        """
        ready, timers = self._ready, self._timers
        while not self._stopping:
            if not ready:
                self._jump()
            while timers and timers[0][0] <= self._now_s:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                call = ready.popleft()
                callback = call.callback
                if callback is None:
                    continue
                try:
                    callback(*call.args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001  as asyncio does: the loop goes on
                    self.call_exception_handler({"message": f"{callback!r} failed", "exception": error})

    def _jump(self) -> None:
        """Set the clock to the next timer that was not cancelled."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heappop(timers)
        if not timers:
            raise NothingLeftToDo("nothing is ready and no timer is set: the simulation waits for itself")
        self._now_s = max(self._now_s, timers[0][0])

    def run_in_executor(self, _executor: Any, func: Any, *_: Any) -> NoReturn:  # type: ignore[override]
        """Refuse: a thread runs in real time, so its result would not be deterministic."""
        raise RuntimeError(f"{func!r} would run in a thread, which virtual time has none of")

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> _Call:
        """Schedule it as `call_soon` does: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: tuple[()]) -> None:
        """Do nothing, because `select` never finds events."""

    def _write_to_self(self) -> None:
        """Do nothing, because there is no selector to wake."""


def run(main: Coroutine[Any, Any, T], *, leave_garbage: bool = False) -> T:
    """Run it to its end in virtual time and return its result.

    The cycles of a run are removed at its end, while everything older is excluded and costs nothing. Leave
    them in a process that ends anyway, where garbage is not looked for any more then.
    """
    if leave_garbage:
        gc.set_threshold(*_LOOK_FOR_GARBAGE_EVERY)
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            result = runner.run(main)
            gc.disable()
            return result
    with rare_garbage_collection(_LOOK_FOR_GARBAGE_EVERY):
        try:
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                return runner.run(main)
        finally:
            gc.collect()
