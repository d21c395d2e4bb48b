"""The event loop of our processes: uvloop if available, otherwise asyncio's own."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import contextmanager, suppress
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
        self._running: set[asyncio.Task[Any]] = set()
        self._closing, self._gate = False, threading.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(
        self, work: Coroutine[Any, Any, T], calls: SimpleQueue[Callable[[], object] | None] | None = None
    ) -> T:
        """Run it on the loop and return what it returned.

        Meanwhile make the calls that it puts into the queue, in the caller's own thread. If one of them
        raises, or the caller is interrupted, cancel the work, wait until it has ended, and raise that.
        Raises RuntimeError if another thread closes this one meanwhile.
        """
        todo = SimpleQueue() if calls is None else calls
        begun: list[asyncio.Task[T]] = []

        def begin() -> None:
            begun.append(self._loop.create_task(work))
            self._running.add(begun[0])
            begun[0].add_done_callback(end)

        def interrupt() -> None:
            begun[0].cancel()

        def end(task: asyncio.Task[T]) -> None:
            self._running.discard(task)
            if not task.cancelled():
                task.exception()  # whoever was interrupted does not ask for it
            todo.put(None)

        with self._gate:
            if self._closing:
                work.close()
                raise RuntimeError("closed")
            self._loop.call_soon_threadsafe(begin)
        try:
            while (call := todo.get()) is not None:
                call()
        except BaseException:
            with suppress(RuntimeError):  # closed meanwhile: then it has ended, too
                self._loop.call_soon_threadsafe(interrupt)
            while todo.get() is not None:
                pass
            raise
        if begun[0].cancelled() and self._closing:
            raise RuntimeError("closed by another thread meanwhile")
        return begun[0].result()

    def close(self) -> None:
        """Cancel what other threads still wait for, and end the loop and its thread. May be called again."""
        with self._gate:
            if self._closing:
                return
            self._closing = True
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
