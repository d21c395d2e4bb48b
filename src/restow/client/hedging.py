"""Ask another broker while one is slow, or go on without it, so that a hanging broker delays nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from restow.client.errors import BrokerError, ClientError, Unreachable
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

T = TypeVar("T")

TOO_SLOW = BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "it takes much longer to answer than the others")
"""What counts as the answer of a broker that was not waited for."""


async def first_answer(
    questions: Sequence[Callable[[], Coroutine[Any, Any, T]]], long_s: float
) -> tuple[int, T]:
    """Send the same question to several brokers; return the index of the first answer, and the answer.

    The next is asked when those before have failed or take longer than `long_s`. If all fail, the last
    failure is raised.
    """
    waiting = list(enumerate(questions))
    asked: dict[asyncio.Task[T], int] = {}
    failure: ClientError = Unreachable("there is nobody to ask")
    try:
        while waiting or asked:
            if waiting:
                at, ask = waiting.pop(0)
                asked[asyncio.create_task(ask())] = at
            patience_s = long_s if waiting else None
            await asyncio.wait(asked, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
            for task in [each for each in asked if each.done()]:
                at = asked.pop(task)
                try:
                    return at, task.result()
                except ClientError as error:
                    failure = error
    finally:
        for task in asked:
            task.cancel()
    raise failure


class Stragglers:
    """Asks many brokers at once, and does not wait for those that take much longer than the others.

    Their questions stay open. While one is open, its broker is not asked again; its answer is returned the
    next time.
    """

    def __init__(self) -> None:
        self._open: dict[int, asyncio.Task[Any]] = {}

    async def answers(
        self, questions: Mapping[int, Callable[[], Coroutine[Any, Any, T]]], patience_s: float | None
    ) -> dict[int, T]:
        """Return the answers that come until `patience_s` after half of them; None waits for all."""
        if patience_s is None:
            answers = await asyncio.gather(*(ask() for ask in questions.values()))
            return dict(zip(questions, answers, strict=True))
        late = {broker: self._open[broker] for broker in questions if broker in self._open}
        asked = {broker: in_background(ask()) for broker, ask in questions.items() if broker not in late}
        waiting = set(asked.values())
        try:
            while len(waiting) > len(asked) // 2:
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if rest := waiting or (set() if asked else set(late.values())):
                await asyncio.wait(rest, timeout=patience_s)
        except asyncio.CancelledError:
            for task in asked.values():
                task.cancel()
            raise
        self._open = {b: task for b, task in {**self._open, **asked}.items() if not task.done()}
        return {b: task.result() for b, task in {**late, **asked}.items() if task.done()}

    def close(self) -> None:
        for task in self._open.values():
            task.cancel()


def in_background(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task whose failure nobody may ask for."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
