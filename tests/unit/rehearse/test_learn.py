"""What journals of earlier runs say about a cluster."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING

import pytest

from restow.execute.journal.journal import JournalEntry
from restow.execute.predict.learn import Lesson, learned, lesson_of
from restow.execute.predict.predicting import guessed_constants
from restow.execute.throttle.throttles import FOLLOWER_RATE
from restow.model import Step, TopicPartition
from restow.plan.files.text import step_document
from restow.plan.flow.constants import IN_WORDS, SLOW, USUAL, Calibration, Constants, known_lines
from restow.rehearse.rehearsing import rehearse
from tests.unit.rehearse.test_rehearse import START_MS, cluster, plan_to

if TYPE_CHECKING:
    from pathlib import Path

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
    """The guess of what a step takes beside copying is left out: whoever predicts adds it again."""
    lesson = lesson_of(journal_of({0: 4.3, 1: 8.3}))
    assert lesson.broker_rate == pytest.approx(25 * MB)


def test_almost_empty_partition_says_how_long_a_step_takes_beside_copying() -> None:
    """The quickest shows it: the others have waited for the bytes of larger ones."""
    ends = {0: 4.3, 1: 8.3}
    known = learned([lesson_of(journal_of(ends, almost_empty={2: 0.3, 3: 0.4, 4: 7.0}))])
    assert known.usual.begin_s + known.usual.settle_s == pytest.approx(0.3)
    assert known.usual.broker_rate == pytest.approx(25 * MB, rel=1e-3)
    assert set(known.sources) == {"broker_rate", "begin_s", "settle_s"}


def test_throttled_run_says_nothing_about_rates() -> None:
    lesson = lesson_of(journal_of({0: 12.5, 1: 25.0}, throttle=10 * MB, almost_empty={2: 5.0}))
    assert lesson == Lesson(throttled_until_ms=25_000, step_s=5.0)


def test_throttled_run_shows_the_time_of_a_step_only_where_the_throttle_is_not_in_the_way() -> None:
    """At 1 kB/s, 1,000 bytes may take a second."""
    ends, almost_empty = {0: 12.5}, {2: 1.5, 3: 30.0}
    assert lesson_of(journal_of(ends, throttle=1000, almost_empty=almost_empty)).step_s == 30.0
    assert lesson_of(journal_of(ends, throttle=MB, almost_empty=almost_empty)).step_s == 1.5


def test_throttled_run_says_how_long_throttles_take() -> None:
    """It began 0.4 s before its first request, and ended 0.5 s after its last arrival."""
    moves = journal_of({0: 12.5, 1: 25.0}, throttle=10 * MB)
    began, ended = JournalEntry(0, -400, "began", {}), JournalEntry(3, 25_500, "ended", {})
    known = learned([lesson_of([began, *moves, ended])])
    assert known.usual.throttling_s == pytest.approx(0.9)
    resumed = [began, *moves, ended, JournalEntry(4, 90_000, "ended", {})]
    assert lesson_of(resumed).throttling_s is None


def test_screen_says_in_words_what_is_known() -> None:
    known = learned([lesson_of(journal_of({0: 4.0, 1: 8.0}, almost_empty={2: 0.3, 3: 0.4, 4: 7.0}))])
    known = known.know("dir_rate", (1.0, 2.0, 3.0), "a guess of mine")
    assert known_lines(known.sources) == [
        (
            "known from 1 earlier run: what a broker can copy per second; how long a move takes to begin; "
            "how long a move takes to end after its last byte"
        ),
        "known from a guess of mine: what a broker can copy per second between its log dirs",
    ]
    names = {each.name for each in fields(Lesson)} & {each.name for each in fields(Constants)}
    assert names | {*guessed_constants(Calibration())} <= IN_WORDS.keys()


def test_known_constant_has_a_narrower_range_than_a_guess() -> None:
    known = learned([lesson_of(journal_of({0: 4.0, 1: 8.0}))])
    assert known.slow.broker_rate < known.usual.broker_rate < known.fast.broker_rate
    assert known.fast.broker_rate / known.slow.broker_rate < USUAL.broker_rate / SLOW.broker_rate


def copies_of(*copies: tuple[float, float, int, int], size: int = 100 * MB) -> list[JournalEntry]:
    """Return a journal of steps: when each was submitted and when it ended, from which broker to which."""
    entries = []
    for number, (since_s, at_s, sender, receiver) in enumerate(copies):
        step = Step(
            partition=TopicPartition("t", number), before=(sender,), after=(receiver,), size_bytes=size
        )
        for kind, when_s in (("submit", since_s), ("finished", at_s)):
            entries.append(JournalEntry(1, int(when_s * 1000), kind, {"steps": [step_document(step)]}))
    return sorted(entries, key=lambda each: each.at_ms)


def test_drained_broker_shows_what_a_broker_can_send() -> None:
    """Each receiver got a third of that, and could have received more."""
    lesson = lesson_of(copies_of((0, 10.3, 1, 2), (0, 10.3, 1, 3), (0, 10.3, 1, 4)))
    assert lesson.broker_rate == pytest.approx(30 * MB)
    assert lesson.total_rate == pytest.approx(30 * MB)


def test_steps_one_at_a_time_take_their_time_beside_copying_each() -> None:
    one_by_one = copies_of((0, 2.5, 1, 2), (2.5, 5, 1, 2), (5, 7.5, 1, 2), (7.5, 10, 1, 2))
    almost_empty = copies_of((20, 20.5, 1, 2), size=1000)
    assert lesson_of([*one_by_one, *almost_empty]).broker_rate == pytest.approx(50 * MB, rel=1e-3)


def test_run_of_two_seconds_shows_what_a_broker_can_do() -> None:
    assert lesson_of(copies_of((0, 1.3, 1, 2), (0, 2.3, 3, 2))).broker_rate == pytest.approx(100 * MB)


def test_brokers_that_get_less_together_share_a_rate(tmp_path: Path) -> None:
    """As on one machine: 100 MB/s for one receiver, and 100 MB/s for two of them together."""
    alone = lesson_of(copies_of((0, 2.3, 1, 4), (0, 2.3, 2, 4)))
    together = lesson_of(copies_of((0, 4.3, 1, 4), (0, 4.3, 2, 5), (0, 4.3, 1, 5), (0, 4.3, 2, 4)))
    known = learned([together, alone])
    assert (known.usual.broker_rate, known.usual.total_rate) == pytest.approx((100 * MB, 100 * MB))
    assert "what all brokers together can copy per second" in known_lines(known.sources)[0]

    there = cluster(12, size=100 * MB)
    for receivers in ((4,), (4, 5)):
        told = rehearse(
            plan_to(there, *receivers), there, throttle="none", calibration=known, journal=tmp_path
        )
        assert 12 < told.seconds.p50 < 14
    assert "all brokers together" in told.limiting[0].what


def test_brokers_that_do_as_much_together_as_alone_share_nothing() -> None:
    alone = lesson_of(copies_of((0, 2.3, 1, 4), (0, 2.3, 2, 4)))
    together = lesson_of(copies_of((0, 2.5, 1, 4), (0, 2.5, 2, 5), (0, 2.5, 1, 5), (0, 2.5, 2, 4)))
    known = learned([together, alone])
    assert known.usual.total_rate == inf
    assert known.usual.broker_rate == pytest.approx(95 * MB, rel=0.01)


def test_run_too_short_to_say_anything_is_ignored() -> None:
    assert learned([lesson_of(journal_of({0: 0.5}))]).sources == {}


@pytest.mark.parametrize(
    ("since_s", "burst_s"), [(0.2, 1.0), (6.0, 6.0), (10.9, 10.9), (11.0, 1.0), (-5.0, 1.0)]
)
def test_throttle_lets_pass_what_was_not_used_since_the_run_before(since_s: float, burst_s: float) -> None:
    """As Kafka's SimpleRate over eleven samples of a second does."""
    known = learned([lesson_of(journal_of({0: 4.0, 1: 8.0}, throttle=20 * MB)), Lesson()])
    assert known.burst_s(int((8.0 + since_s) * 1000)) == pytest.approx(burst_s)
    assert Calibration().burst_s(8_000) == 1.0


def test_short_run_after_another_may_be_faster_than_its_throttle(tmp_path: Path) -> None:
    """A long run makes up for the burst; without a throttle there is none."""
    known = replace(Calibration(), throttled_until_ms=START_MS - 6_000)

    def fastest(size: int, throttle: str, calibration: Calibration) -> tuple[float, float]:
        there = cluster(2, size=size)
        told = rehearse(
            plan_to(there, 4, 5),
            there,
            throttle=throttle,
            calibration=calibration,
            start=datetime.fromtimestamp(START_MS / 1000, tz=UTC).isoformat(),
            journal=tmp_path,
        )
        return told.seconds.p10, told.seconds.p50

    short, middle = fastest(80 * MB, "10MB/s", known)
    assert middle == pytest.approx(8, abs=1)
    assert 2 < short < 4
    assert fastest(80 * MB, "10MB/s", Calibration())[0] > 7
    assert fastest(800 * MB, "10MB/s", known) == fastest(800 * MB, "10MB/s", Calibration())
    assert fastest(80 * MB, "none", known) == fastest(80 * MB, "none", Calibration())


def test_last_fetch_of_a_throttled_run_may_come_early(tmp_path: Path) -> None:
    """Ten replicas of 9 MB at 1 MB/s: Kafka sends a MiB of each at once, and nobody waits after the last."""
    there = cluster(10, size=9 * MB)
    told = rehearse(plan_to(there, 4), there, throttle="1MB/s", calibration=Calibration(), journal=tmp_path)
    assert told.seconds.p50 > 89
    assert 75 < told.seconds.p10 < 82
