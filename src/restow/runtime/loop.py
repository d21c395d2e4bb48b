"""The event loop of our processes: uvloop if available, otherwise asyncio's own."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")

_LOOK_FOR_GARBAGE_EVERY = (20_000, 20, 50)
"""Thresholds of the garbage collector. Thousands of partitions are long-lived objects, and Python's defaults
would scan them over and over while they are made.
"""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to completion on a new loop and return the result."""
    with rare_garbage_collection(), asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


@contextmanager
def rare_garbage_collection(
    thresholds: tuple[int, int, int] = _LOOK_FOR_GARBAGE_EVERY,
) -> Iterator[None]:
    """Look for garbage less often.

    The process is taken for ours: objects imported so far are excluded from garbage collection.
    Objects that the caller has excluded before stay excluded.
    """
    before = gc.get_threshold()
    is_first = gc.get_freeze_count() == 0
    if is_first:
        gc.freeze()
    gc.set_threshold(*thresholds)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if is_first:
            gc.unfreeze()


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop of that kind, not running yet."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class LoopThread:
    """A loop in a thread of its own, for callers that have no loop or have one that is running already."""

    def __init__(self, name: str) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(
        self, work: Coroutine[Any, Any, T], calls: SimpleQueue[Callable[[], object] | None] | None = None
    ) -> T:
        """Run it on the loop and return what it returned.

        Meanwhile make the calls that it puts into the queue, in the caller's own thread. If one of them
        raises, or the caller is interrupted, cancel the work, wait until it has ended, and raise that.
        """
        todo = SimpleQueue() if calls is None else calls

        async def whole() -> T:
            try:
                return await work
            finally:
                todo.put(None)

        future = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            while (call := todo.get()) is not None:
                call()
        except BaseException:
            future.cancel()
            while todo.get() is not None:
                pass
            raise
        return future.result()

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
