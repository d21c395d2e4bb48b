"""The controller's one queue and one worker: whatever it does, it does one thing after another.

Watches, answers of brokers and requests of clients only put events here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")

Work: TypeAlias = "Callable[[], Coroutine[object, object, object]]"


class ControllerEvent(NamedTuple):
    """Something to do, with a name for the log."""

    name: str
    work: Work


class EventQueue:
    """First come, first served. An event that fails goes to `failed`, and the next one is served."""

    def __init__(self, failed: Callable[[str, Exception], Awaitable[None]]) -> None:
        self._failed = failed
        self._events: asyncio.Queue[ControllerEvent] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._asked: set[asyncio.Future[object]] = set()

    def start(self, name: str) -> None:
        """Begin to serve."""
        self._worker = asyncio.create_task(self._serve(), name=name)

    async def stop(self, reason: Exception) -> None:
        """Leave off where it stands. Whoever waits for an answer gets the reason."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        for answer in tuple(self._asked):
            answer.set_exception(reason)

    def put(self, name: str, work: Work) -> None:
        """Do it when everything before it is done."""
        self._events.put_nowait(ControllerEvent(name, work))

    async def ask(self, name: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Do it in its turn, and answer with what came of it."""
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
            event = await self._events.get()
            try:
                await event.work()
            except Exception as error:  # noqa: BLE001  the controller decides what a failure means
                await self._failed(event.name, error)
