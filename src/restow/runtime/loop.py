"""The event loop of our processes: uvloop if available, otherwise asyncio's own."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_LOOK_FOR_GARBAGE_EVERY = (20_000, 20, 50)
"""Thresholds of the garbage collector. Thousands of partitions are long-lived objects, and Python's defaults
would scan them over and over while they are made.
"""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to completion on a new loop and return the result.

    The process is taken for ours: objects imported so far are excluded from garbage collection.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_LOOK_FOR_GARBAGE_EVERY)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(main)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop of that kind, not running yet."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
