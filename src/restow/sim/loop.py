"""An event loop whose time is virtual.

There is no selector and no socket: when nothing is ready, the clock jumps to the next timer. So a run depends
only on what was scheduled, and an hour of it takes as long as computing its events.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class NothingLeftToDo(RestowError):
    """A deadlock: no callback is ready and no timer is set."""


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own scheduling on a clock that jumps."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._selector = self
        self.set_debug(False)

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._now_s

    def select(self, timeout_s: float | None) -> tuple[()]:
        """Advance the clock by the time that asyncio would wait for a socket."""
        if timeout_s is None:
            raise NothingLeftToDo("nothing is ready and no timer is set: the simulation waits for itself")
        if timeout_s > 0:
            self._now_s += timeout_s
        return ()

    def run_in_executor(self, _executor: Any, func: Any, *_: Any) -> NoReturn:  # type: ignore[override]
        """Refuse: a thread runs in real time, so its result would not be deterministic."""
        raise RuntimeError(f"{func!r} would run in a thread, which virtual time has none of")

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """Schedule it as `call_soon` does: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: tuple[()]) -> None:
        """Do nothing, because `select` never finds events."""

    def _write_to_self(self) -> None:
        """Do nothing, because there is no selector to wake."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end in virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
