"""Being told to stop: once in order, twice at once."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def told_to_stop() -> Iterator[asyncio.Event]:
    """An event that the first ctrl-C or SIGTERM sets. The second one ends the process as it would any."""
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
