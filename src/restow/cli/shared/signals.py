"""Signals that stop a command: the first in order, the second at once."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from types import FrameType

T = TypeVar("T")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def told_to_stop() -> Iterator[asyncio.Event]:
    """Return an event that the first ctrl-C or SIGTERM sets. The second one ends the process."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def listen_no_more() -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    def tell() -> None:
        told.set()
        listen_no_more()

    for each in _SIGNALS:
        loop.add_signal_handler(each, tell)
    try:
        yield told
    finally:
        listen_no_more()


async def unless_told(told: asyncio.Event, work: Awaitable[T]) -> T | None:
    """Return the result of `work`, or abandon it and return None once `told` is set."""
    answer = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(told.wait())
    await asyncio.wait({answer, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if answer.done():
        return answer.result()
    answer.cancel()
    await asyncio.wait({answer})
    return None


@contextmanager
def told_to_stop_here() -> Iterator[threading.Event]:
    """Return such an event for a main thread without an event loop."""
    told = threading.Event()
    before = {each: signal.getsignal(each) for each in _SIGNALS}

    def tell(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  (what handlers are given)
        told.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    for each in _SIGNALS:
        signal.signal(each, tell)
    try:
        yield told
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
