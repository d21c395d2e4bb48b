"""Background tasks of a broker. Their failures are logged, and they end with the broker."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from restow.cluster.store import SessionExpired

if TYPE_CHECKING:
    from collections.abc import Coroutine

log = logging.getLogger(__name__)


class Tasks:
    """Holds references to tasks and logs their exceptions."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[object], None] = {}
        self._closed = False

    def start(self, work: Coroutine[Any, Any, object], name: str) -> None:
        """Start a task; do nothing after `close`."""
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel running tasks and wait until they have ended."""
        self._closed = True
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._running.pop(task, None)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, SessionExpired):
            log.info("%s ended with the session", task.get_name())
        else:
            log.error("%s failed", task.get_name(), exc_info=error)
