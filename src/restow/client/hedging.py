"""Ask another broker while one is slow, so that a hanging broker delays nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from restow.client.errors import ClientError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

T = TypeVar("T")


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
