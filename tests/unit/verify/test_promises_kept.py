"""Promises of plans, checked as goals: what is left is named, whatever the moves were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.model import CheckOutcome, Left, Plan, Promise, Snapshot, TopicPartition
from restow.verify import verify
from tests.unit.plan.clusters import snapshot
from tests.unit.plan.test_plan_titles import racked, with_partition, without_broker


def plan(*promises: Promise, leaves: tuple[Left, ...] = ()) -> Plan:
    return Plan(cluster_id="here", created_ms=0, moves=(), promises=promises, leaves=leaves)


def only_check(promise: Promise, now: Snapshot, *leaves: Left) -> tuple[CheckOutcome, str]:
    check = verify(plan(promise, leaves=leaves), now).checks[1]
    assert check.outcome is CheckOutcome.HOLDS or check.advice
    return check.outcome, check.evidence


BROKERS = (1, 2, 3, 4)
DRAINED = Promise(kind="drained", brokers=(3,))


def test_drained_broker_is_empty_or_its_replicas_are_named() -> None:
    assert only_check(DRAINED, snapshot({"t": [(1, 2)]}, brokers=BROKERS))[0] is CheckOutcome.HOLDS
    created_since = snapshot({"new": [(1, 3)], "t": [(1, 2)]}, brokers=BROKERS)
    assert only_check(DRAINED, created_since) == (CheckOutcome.FAILS, "1 partition: new-0 on broker 3")
    scoped = replace(DRAINED, topics=("t*",))
    assert only_check(scoped, created_since)[0] is CheckOutcome.HOLDS


def test_partition_that_the_plan_left_out_is_named_with_its_reason() -> None:
    now = snapshot({"t": [(3,)]}, brokers=BROKERS)
    why = "its only replica is on broker 3, which is down"
    left = Left(partition=TopicPartition("t", 0), why=why)
    verdict = verify(plan(DRAINED, leaves=(left,)), now)
    assert not verdict.holds
    assert f"t-0 on broker 3 (the plan left it out: {why})" in verdict.checks[1].evidence


def test_promises_about_hidden_topics_are_unknown() -> None:
    now = replace(snapshot({"t": [(1, 2)]}, brokers=BROKERS), hidden_topics=("secret",))
    assert only_check(DRAINED, now)[0] is CheckOutcome.UNKNOWN
    assert only_check(replace(DRAINED, topics=("t",)), now)[0] is CheckOutcome.HOLDS


def test_replaced_broker_is_empty() -> None:
    promise = Promise(kind="replaced", brokers=(3, 4))
    assert only_check(promise, snapshot({"t": [(1, 4)]}, brokers=BROKERS))[0] is CheckOutcome.HOLDS
    assert only_check(promise, snapshot({"t": [(1, 3)]}, brokers=BROKERS))[0] is CheckOutcome.FAILS


def test_factor_promise_ignores_internal_topics_unless_named() -> None:
    now = snapshot({"__offsets": [(1, 2)], "t": [(1, 2, 3), (1, 2)]}, brokers=BROKERS)
    now = replace(now, topics=(replace(now.topics[0], internal=True), now.topics[1]))
    everything = Promise(kind="replication_factor", topics=("*",), replication_factor=3)
    assert only_check(everything, now) == (CheckOutcome.FAILS, "1 partition: t-1 with 2")
    named = Promise(kind="replication_factor", topics=("__*",), replication_factor=3)
    assert only_check(named, now) == (CheckOutcome.FAILS, "1 partition: __offsets-0 with 2")


def test_racks_are_apart_or_unknown() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    promise = Promise(kind="racks_apart", brokers=BROKERS)
    apart = racked(snapshot({"t": [(1, 3)]}, brokers=BROKERS), racks)
    assert only_check(promise, apart)[0] is CheckOutcome.HOLDS
    together = racked(snapshot({"t": [(1, 2)]}, brokers=BROKERS), racks)
    assert only_check(promise, together) == (CheckOutcome.FAILS, "1 partition: t-0 in 1 of 2 racks")
    assert only_check(promise, without_broker(apart, 3))[0] is CheckOutcome.UNKNOWN


def test_demoted_broker_leads_nothing() -> None:
    promise = Promise(kind="no_leaders", brokers=(3,))
    now = snapshot({"t": [(1, 3)]}, brokers=BROKERS)
    assert only_check(promise, now)[0] is CheckOutcome.HOLDS
    back = with_partition(now, TopicPartition("t", 0), leader=3)
    assert only_check(promise, back) == (CheckOutcome.FAILS, "1 partition: t-0 led by broker 3")


@pytest.mark.parametrize("goal", ["disk", "replicas", "leaders"])
def test_goal_is_in_its_band_or_brokers_are_named(goal: str) -> None:
    promise = Promise(kind="balanced", brokers=(1, 2), goal=goal, band=0.09)
    assert only_check(promise, snapshot({"t": [(1,), (2,)]}, brokers=BROKERS))[0] is CheckOutcome.HOLDS
    skewed = snapshot({"t": [(1,), (1,), (1,), (2,)]}, brokers=BROKERS)
    assert only_check(promise, skewed) == (
        CheckOutcome.FAILS,
        "2 brokers: broker 1 at 1.500 × its share, broker 2 at 0.500 × its share",
    )
    assert only_check(promise, without_broker(skewed, 2))[0] is CheckOutcome.UNKNOWN


@pytest.mark.parametrize("goal", ["disk", "replicas", "leaders"])
def test_band_does_not_count_what_was_made_after_the_plan_but_names_it(goal: str) -> None:
    """`old` got a third partition, `t` was deleted and made anew, `new` came: the plan knew none of them."""
    promise = Promise(kind="balanced", brokers=(1, 2), goal=goal, band=0.09)
    even, skewed = [(1,), (2,)], [(1,), (1,), (1,), (2,)]
    made = replace(plan(promise), known_partitions={"old": 2, "t": 1}, topic_ids={"t": "id of the first t"})

    def check(**topics: list[tuple[int, ...]]) -> tuple[CheckOutcome, str]:
        now = snapshot(topics, brokers=BROKERS)
        anew = [replace(each, id=f"id of {each.name}") for each in now.topics]
        found = verify(made, replace(now, topics=tuple(anew))).checks[1]
        return found.outcome, found.evidence

    good = "every broker is within 9.0% of its share, or has the next whole number"
    assert check(old=even) == (CheckOutcome.HOLDS, good)
    since = "partitions made after the plan do not count (new, old, t)"
    with_them = "with them: broker 1 at 1.667 × its share, broker 2 at 0.333 × its share"
    assert check(old=[*even, (1,)], t=[(1,)], new=[(1,), (1,)]) == (
        CheckOutcome.HOLDS,
        f"{good}; {since}, {with_them}",
    )
    made = replace(made, known_partitions={"old": 4})
    outcome, told = check(old=skewed, new=[(2,), (2,)])
    assert outcome is CheckOutcome.FAILS, "what was made since turns no verdict good, either"
    assert told.endswith("partitions made after the plan do not count (new)")


def test_broker_with_a_partition_made_after_the_plan_is_not_empty() -> None:
    now = snapshot({"new": [(1, 3)], "t": [(1, 2)]}, brokers=BROKERS)
    check = verify(replace(plan(DRAINED), known_partitions={"t": 1}), now).checks[1]
    assert (check.outcome, check.evidence) == (
        CheckOutcome.FAILS,
        "1 partition: new-0 on broker 3 (made after the plan)",
    )


def test_promise_of_another_version_is_unknown() -> None:
    verdict = verify(plan(Promise(kind="blessed")), snapshot({"t": [(1,)]}, brokers=BROKERS))
    assert not verdict.holds
    assert verdict.checks[1].outcome is CheckOutcome.UNKNOWN
