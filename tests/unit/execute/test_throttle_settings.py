"""Throttles: set for exactly what moves, merged with what is there, and taken back to the letter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from restow.execute.throttle.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Setting,
    ThrottleRates,
    merged,
    needed,
    restoration,
)
from restow.model import Step, TopicPartition

STEP = Step(partition=TopicPartition("t", 3), before=(1, 2), after=(2, 4))
LEADERS = Setting("topic", "t", LEADER_REPLICAS)


def test_senders_and_receivers_and_nobody_else() -> None:
    assert needed([STEP], [], ThrottleRates(rate=1000)) == {
        Setting("broker", "1", LEADER_RATE): "1000",
        Setting("broker", "2", LEADER_RATE): "1000",
        Setting("broker", "4", FOLLOWER_RATE): "1000",
        LEADERS: "3:1,3:2",
        Setting("topic", "t", FOLLOWER_REPLICAS): "3:4",
    }


def test_a_step_that_copies_nothing_needs_nothing() -> None:
    assert (
        needed([Step(partition=STEP.partition, before=(1, 2), after=(2, 1))], [], ThrottleRates(rate=5)) == {}
    )


def test_without_a_rate_nothing_is_set() -> None:
    assert needed([STEP], [7], ThrottleRates()) == {}


def test_lists_grow_and_a_star_stays() -> None:
    ours = {LEADERS: "3:1,3:2"}
    assert merged(ours, {LEADERS: "0:9,3:1"}) == {LEADERS: "0:9,3:1,3:2"}
    assert merged(ours, {LEADERS: "*"}) == {LEADERS: "*"}


def test_what_was_there_comes_back_to_the_letter() -> None:
    back = restoration({LEADERS: "3:1 ,0:9"}, {LEADERS: ("0:9,3:1,3:2",)}, {LEADERS: "0:9,3:1,3:2"})
    assert back.changes == {LEADERS: "3:1 ,0:9"}


def test_a_rate_that_somebody_else_set_meanwhile_is_left_alone() -> None:
    rate = Setting("broker", "1", LEADER_RATE)
    back = restoration({rate: None}, {rate: ("1000",)}, {rate: "77"})
    assert back.changes == {}
    assert back.left_alone == {rate: "77"}


def test_of_a_list_that_somebody_else_changed_only_our_part_goes() -> None:
    back = restoration({LEADERS: "0:9"}, {LEADERS: ("0:9,3:1",)}, {LEADERS: "0:9,3:1,5:5"})
    assert back.changes == {LEADERS: "0:9,5:5"}


def test_what_is_as_it_was_is_not_touched() -> None:
    assert restoration({LEADERS: None}, {LEADERS: ("3:1",)}, {LEADERS: None}).changes == {}


def test_an_attempt_that_may_or_may_not_have_arrived_is_taken_back_either_way() -> None:
    rate = Setting("broker", "1", LEADER_RATE)
    for arrived in ("1000", "2000"):
        back = restoration({rate: "5"}, {rate: ("1000", "2000")}, {rate: arrived})
        assert back.changes == {rate: "5"}
    shrunk = restoration(
        {LEADERS: "0:9"}, {LEADERS: ("0:9,3:1,4:1", "0:9,4:1")}, {LEADERS: "0:9,3:1,4:1,7:7"}
    )
    assert shrunk.changes == {LEADERS: "0:9,7:7"}


entries = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda each: f"{each[0]}:{each[1]}"))


@given(entries, entries, entries)
def test_others_never_lose_an_entry_and_ours_never_stay(
    before: set[str], mine: set[str], later: set[str]
) -> None:
    prior = {LEADERS: ",".join(sorted(before)) or None}
    if not mine:
        return
    ours = merged({LEADERS: ",".join(sorted(mine))}, prior)
    now = {LEADERS: ",".join(sorted(set(ours[LEADERS].split(",")) | later))}
    back = restoration(prior, {LEADERS: (ours[LEADERS],)}, now)
    left = back.changes.get(LEADERS, now[LEADERS]) or ""
    kept = set(left.split(",")) - {""}
    assert before <= kept
    assert kept <= before | later
