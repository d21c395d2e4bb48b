"""The controller's event queue, served by one worker, so that events never overlap.

Watches, broker responses and client requests only put events here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")

Work: TypeAlias = "Callable[[], Coroutine[object, object, object]]"


class EventQueue:
    """A FIFO queue. A failed event goes to `failed`, and the worker serves the next one."""

    def __init__(self, failed: Callable[[str, Exception], Awaitable[None]]) -> None:
        self._failed = failed
        self._events: asyncio.Queue[tuple[str, Work]] = asyncio.Queue()
        """Names, for the log, and the work to do."""
        self._worker: asyncio.Task[None] | None = None
        self._asked: set[asyncio.Future[object]] = set()

    def start(self, name: str) -> None:
        """Start the worker."""
        self._worker = asyncio.create_task(self._serve(), name=name)

    async def stop(self, reason: Exception) -> None:
        """Stop the worker. Callers that wait for a result get the reason."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        for answer in tuple(self._asked):
            answer.set_exception(reason)

    def put(self, name: str, work: Work) -> None:
        """Queue the work behind earlier events."""
        self._events.put_nowait((name, work))

    async def ask(self, name: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Queue the work and return its result."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.add(answer)  # type: ignore[arg-type]
        answer.add_done_callback(self._asked.discard)

        async def work_and_answer() -> None:
            try:
                result = await work()
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)
                raise
            if not answer.done():
                answer.set_result(result)

        self.put(name, work_and_answer)
        return await answer

    async def _serve(self) -> None:
        while True:
            name, work = await self._events.get()
            try:
                await work()
            except Exception as error:  # noqa: BLE001  the controller decides what a failure means
                await self._failed(name, error)
