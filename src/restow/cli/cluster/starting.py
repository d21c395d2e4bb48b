"""Starting what listens: until it does, until it is told not to, or until a port is taken."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from restow.errors import BrokerFailed

if TYPE_CHECKING:
    from collections.abc import Coroutine


async def started(start: Coroutine[Any, Any, None], told: asyncio.Event, port: str) -> bool:
    """Whether it has started; False if it was told to stop before. `port` names what it listens on."""
    loop = asyncio.get_running_loop()
    starting, waiting = loop.create_task(start), loop.create_task(told.wait())
    try:
        await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await starting
            return False
        starting.result()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise BrokerFailed(f"{port} is taken: give another --port, or 0 for a free one") from error
    finally:
        waiting.cancel()
    return True
