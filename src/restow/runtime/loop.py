"""The loop that a process of ours runs on: uvloop where it can be had, asyncio's own elsewhere."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_LOOK_FOR_GARBAGE_EVERY = (20_000, 20, 50)
"""New objects until a look at the youngest, and how many of those until a look at older ones. Thousands of
partitions are objects that stay; Python's default looks at all of them over and over while they are made."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end on a loop of its own, and give back what it returned.

    The process is taken for ours: what has been imported by now is not looked at for garbage meanwhile.
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
    """A loop of that kind, not running yet."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
