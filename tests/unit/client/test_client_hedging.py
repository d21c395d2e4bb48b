"""Asking another broker while one is slow, and going on without it."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from restow.client import Unreachable
from restow.client.hedging import Stragglers, first_answer

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


def test_stragglers_are_left_behind_and_not_asked_again() -> None:
    async def main() -> None:
        brokers, stragglers = Brokers("yes", "yes", "hangs"), Stragglers()
        questions = {at: partial(brokers.ask, at) for at in range(3)}
        for _ in range(2):
            assert await stragglers.answers(questions, SOON_S) == {0: "yes", 1: "yes"}
        assert brokers.asked == [0, 1, 2, 0, 1]
        stragglers.close()
        await asyncio.sleep(0)
        assert brokers.cancelled == [2]

    asyncio.run(main())


def test_answer_of_a_straggler_is_returned_the_next_time() -> None:
    async def main() -> None:
        may_answer, stragglers = asyncio.Event(), Stragglers()

        async def late() -> str:
            await may_answer.wait()
            return "late"

        questions = {0: partial(Brokers("yes").ask, 0), 1: late}
        assert await stragglers.answers(questions, SOON_S) == {0: "yes"}
        may_answer.set()
        await asyncio.sleep(0)
        assert await stragglers.answers(questions, SOON_S) == {0: "yes", 1: "late"}

    asyncio.run(main())


@pytest.mark.parametrize("patience_s", [0.0, None])
def test_slow_brokers_are_waited_for_while_most_are_slow(patience_s: float | None) -> None:
    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "slow"

    questions = {0: partial(Brokers("yes").ask, 0), 1: slow, 2: slow}
    answers = asyncio.run(Stragglers().answers(questions, patience_s))
    assert answers == {0: "yes", 1: "slow", 2: "slow"}


def test_cancelled_caller_leaves_no_question_open() -> None:
    async def main() -> None:
        brokers = Brokers("hangs", "hangs")
        asking = asyncio.create_task(
            Stragglers().answers({at: partial(brokers.ask, at) for at in range(2)}, SOON_S)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(0)
        assert brokers.cancelled == [0, 1]

    asyncio.run(main())


@pytest.mark.parametrize("patience_s", [None, 1.0])
def test_nobody_is_waited_for_where_nobody_is_asked(patience_s: float | None) -> None:
    async def main() -> None:
        assert await Stragglers().answers({}, patience_s) == {}

    asyncio.run(main())
