"""What journals of earlier runs say about a cluster."""

from __future__ import annotations

import pytest

from restow.execute.journal.journal import JournalEntry
from restow.execute.predict.learn import learned, lesson_of
from restow.execute.throttle.throttles import FOLLOWER_RATE
from restow.model import Step, TopicPartition
from restow.plan.files.text import step_document
from restow.plan.flow.constants import SLOW, USUAL

MB = 10**6


def journal_of(ends_s: dict[int, float], *, throttle: int | None = None) -> list[JournalEntry]:
    """Return a journal: steps of 100 MB to broker 2 that all begin at 0 and end at these times."""
    steps = {
        number: step_document(
            Step(partition=TopicPartition("t", number), before=(1,), after=(2,), size_bytes=100 * MB)
        )
        for number in ends_s
    }
    entries = [JournalEntry(1, 0, "submit", {"steps": list(steps.values())})]
    if throttle is not None:
        change = {"setting": ["broker", "2", FOLLOWER_RATE], "prior": None, "value": str(throttle)}
        entries.insert(0, JournalEntry(0, 0, "throttle", {"changes": [change]}))
    for number, at_s in ends_s.items():
        entries.append(JournalEntry(2, int(at_s * 1000), "finished", {"steps": [steps[number]]}))
    return entries


def test_run_without_throttle_says_what_a_broker_can_receive() -> None:
    lesson = lesson_of(journal_of({0: 4.0, 1: 8.0}))
    assert lesson.broker_rate == pytest.approx(25 * MB)
    assert lesson.throttle_share is None


def test_throttled_run_says_which_share_passes() -> None:
    lesson = lesson_of(journal_of({0: 12.5, 1: 25.0}, throttle=10 * MB))
    assert lesson.throttle_share == pytest.approx(0.8)
    assert lesson.broker_rate is None


def test_shortest_step_says_how_long_a_step_takes_beside_copying() -> None:
    ends = {0: 0.4, 1: 5.0, 2: 6.0, 3: 7.0, 4: 8.0}
    known = learned([lesson_of(journal_of(ends))])
    assert known.usual.begin_s + known.usual.settle_s == pytest.approx(0.4)
    assert set(known.sources) == {"broker_rate", "begin_s", "settle_s"}


def test_known_constant_has_a_narrower_range_than_a_guess() -> None:
    known = learned([lesson_of(journal_of({0: 4.0, 1: 8.0}))])
    assert known.slow.broker_rate < known.usual.broker_rate < known.fast.broker_rate
    assert known.fast.broker_rate / known.slow.broker_rate < USUAL.broker_rate / SLOW.broker_rate


def test_run_too_short_to_say_anything_is_ignored() -> None:
    assert learned([lesson_of(journal_of({0: 0.5}))]).sources == {}
