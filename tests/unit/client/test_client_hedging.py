"""Asking another broker while one is slow."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from restow.client import Unreachable
from restow.client.hedging import first_answer

NEVER_S, SOON_S = 3600.0, 0.01


class Brokers:
    """Brokers that answer, fail or hang; the asked ones are recorded."""

    def __init__(self, *manners: str) -> None:
        self._manners = manners
        self.asked: list[int] = []
        self.cancelled: list[int] = []

    async def ask(self, number: int) -> str:
        self.asked.append(number)
        manner = self._manners[number]
        if manner == "hangs":
            try:
                await asyncio.sleep(NEVER_S)
            except asyncio.CancelledError:
                self.cancelled.append(number)
                raise
        if manner == "fails":
            raise Unreachable(f"{number} fails")
        if manner == "breaks":
            raise ZeroDivisionError
        return manner

    def first(self, long_s: float = SOON_S) -> tuple[int, str]:
        async def main() -> tuple[int, str]:
            found = await first_answer([partial(self.ask, at) for at in range(len(self._manners))], long_s)
            await asyncio.sleep(0)
            return found

        return asyncio.run(main())


def test_only_one_broker_is_asked_if_it_answers() -> None:
    brokers = Brokers("yes", "no")
    assert brokers.first(NEVER_S) == (0, "yes")
    assert brokers.asked == [0]


def test_next_broker_is_asked_beside_one_that_hangs() -> None:
    brokers = Brokers("hangs", "hangs", "yes", "no")
    assert brokers.first() == (2, "yes")
    assert brokers.asked == [0, 1, 2]
    assert brokers.cancelled == [0, 1]


def test_next_broker_is_asked_at_once_after_a_failure() -> None:
    brokers = Brokers("fails", "yes")
    assert brokers.first(NEVER_S) == (1, "yes")


def test_last_failure_is_raised_when_all_fail() -> None:
    with pytest.raises(Unreachable, match="1 fails"):
        Brokers("fails", "fails").first(NEVER_S)


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        Brokers("breaks", "yes").first(NEVER_S)


def test_no_brokers_are_refused() -> None:
    with pytest.raises(Unreachable, match="nobody"):
        Brokers().first()
