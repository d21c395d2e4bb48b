"""The loop that a process of ours runs on: uvloop where it can be had, asyncio's own elsewhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end on a loop of its own, and give back what it returned."""
    with asyncio.Runner(loop_factory=_new_loop()) as runner:
        return runner.run(main)


def _new_loop() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
