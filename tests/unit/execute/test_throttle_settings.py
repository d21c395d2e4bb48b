"""Throttles: set for exactly what moves, merged with existing values, and restored exactly."""

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


def test_needed_throttles_only_senders_and_receivers() -> None:
    assert needed([STEP], [], ThrottleRates(rate=1000)) == {
        Setting("broker", "1", LEADER_RATE): "1000",
        Setting("broker", "2", LEADER_RATE): "1000",
        Setting("broker", "4", FOLLOWER_RATE): "1000",
        LEADERS: "3:1,3:2",
        Setting("topic", "t", FOLLOWER_REPLICAS): "3:4",
    }


def test_needed_is_empty_for_a_step_without_copies() -> None:
    assert (
        needed([Step(partition=STEP.partition, before=(1, 2), after=(2, 1))], [], ThrottleRates(rate=5)) == {}
    )


def test_needed_is_empty_without_a_rate() -> None:
    assert needed([STEP], [7], ThrottleRates()) == {}


def test_merged_extends_lists_and_keeps_a_star() -> None:
    ours = {LEADERS: "3:1,3:2"}
    assert merged(ours, {LEADERS: "0:9,3:1"}) == {LEADERS: "0:9,3:1,3:2"}
    assert merged(ours, {LEADERS: "*"}) == {LEADERS: "*"}


def test_restoration_restores_prior_values_exactly() -> None:
    back = restoration({LEADERS: "3:1 ,0:9"}, {LEADERS: ("0:9,3:1,3:2",)}, {LEADERS: "0:9,3:1,3:2"})
    assert back.changes == {LEADERS: "3:1 ,0:9"}


def test_restoration_leaves_a_rate_that_another_tool_has_set() -> None:
    rate = Setting("broker", "1", LEADER_RATE)
    back = restoration({rate: None}, {rate: ("1000",)}, {rate: "77"})
    assert back.changes == {}
    assert back.left_alone == {rate: "77"}


def test_restoration_removes_only_our_entries_from_a_changed_list() -> None:
    back = restoration({LEADERS: "0:9"}, {LEADERS: ("0:9,3:1",)}, {LEADERS: "0:9,3:1,5:5"})
    assert back.changes == {LEADERS: "0:9,5:5"}


def test_restoration_changes_nothing_that_is_as_before() -> None:
    assert restoration({LEADERS: None}, {LEADERS: ("3:1",)}, {LEADERS: None}).changes == {}


def test_restoration_covers_an_attempt_that_may_have_failed() -> None:
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
def test_restoration_keeps_all_entries_of_others_and_none_of_ours(
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
