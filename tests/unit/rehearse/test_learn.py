"""What journals of earlier runs say about a cluster."""

from __future__ import annotations

import pytest

from restow.execute.journal.journal import JournalEntry
from restow.execute.predict.learn import Lesson, learned, lesson_of
from restow.execute.throttle.throttles import FOLLOWER_RATE
from restow.model import Step, TopicPartition
from restow.plan.files.text import step_document
from restow.plan.flow.constants import SLOW, USUAL

MB = 10**6


def journal_of(
    ends_s: dict[int, float], *, throttle: int | None = None, almost_empty: dict[int, float] | None = None
) -> list[JournalEntry]:
    """Return a journal: steps of 100 MB, or of 1 kB, to broker 2, from 0 to these times."""
    sizes = {**dict.fromkeys(ends_s, 100 * MB), **dict.fromkeys(almost_empty or {}, 1000)}
    steps = {
        number: step_document(
            Step(partition=TopicPartition("t", number), before=(1,), after=(2,), size_bytes=size)
        )
        for number, size in sizes.items()
    }
    entries = [JournalEntry(1, 0, "submit", {"steps": list(steps.values())})]
    if throttle is not None:
        change = {"setting": ["broker", "2", FOLLOWER_RATE], "prior": None, "value": str(throttle)}
        entries.insert(0, JournalEntry(0, 0, "throttle", {"changes": [change]}))
    for number, at_s in {**ends_s, **(almost_empty or {})}.items():
        entries.append(JournalEntry(2, int(at_s * 1000), "finished", {"steps": [steps[number]]}))
    return entries


def test_run_without_throttle_says_what_a_broker_can_receive() -> None:
    lesson = lesson_of(journal_of({0: 4.0, 1: 8.0}))
    assert lesson.broker_rate == pytest.approx(25 * MB)


def test_almost_empty_partition_says_how_long_a_step_takes_beside_copying() -> None:
    ends = {0: 4.4, 1: 8.4}
    known = learned([lesson_of(journal_of(ends, almost_empty={2: 0.3, 3: 0.4, 4: 7.0}))])
    assert known.usual.begin_s + known.usual.settle_s == pytest.approx(0.4)
    assert known.usual.broker_rate == pytest.approx(25 * MB, rel=1e-3)
    assert set(known.sources) == {"broker_rate", "begin_s", "settle_s"}


def test_throttled_run_says_nothing_about_rates() -> None:
    lesson = lesson_of(journal_of({0: 12.5, 1: 25.0}, throttle=10 * MB, almost_empty={2: 5.0}))
    assert lesson == Lesson()


def test_throttled_run_says_how_long_throttles_take() -> None:
    """It began 0.4 s before its first request, and ended 0.5 s after its last arrival."""
    moves = journal_of({0: 12.5, 1: 25.0}, throttle=10 * MB)
    began, ended = JournalEntry(0, -400, "began", {}), JournalEntry(3, 25_500, "ended", {})
    known = learned([lesson_of([began, *moves, ended])])
    assert known.usual.throttling_s == pytest.approx(0.9)
    resumed = [began, *moves, ended, JournalEntry(4, 90_000, "ended", {})]
    assert lesson_of(resumed) == Lesson()


def test_known_constant_has_a_narrower_range_than_a_guess() -> None:
    known = learned([lesson_of(journal_of({0: 4.0, 1: 8.0}))])
    assert known.slow.broker_rate < known.usual.broker_rate < known.fast.broker_rate
    assert known.fast.broker_rate / known.slow.broker_rate < USUAL.broker_rate / SLOW.broker_rate


def test_run_too_short_to_say_anything_is_ignored() -> None:
    assert learned([lesson_of(journal_of({0: 0.5}))]).sources == {}
