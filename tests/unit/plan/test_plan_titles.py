"""Plans do what their titles say, or list what they leave behind and why."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.errors import InvalidInput
from restow.model import Copy, Left, Partition, Promise, TopicPartition
from restow.plan.explain.explain import explain
from restow.plan.judge.evaluate import evaluate
from restow.plan.propose import propose
from restow.plan.request.request import PlanRequest
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import Plan, Snapshot

ROWS = [(4, 1, 2), (1, 4, 2), (1, 2, 4), (2, 1, 3), (4, 2, 3)]


def racked(there: Snapshot, racks: Mapping[int, str]) -> Snapshot:
    return replace(there, brokers=tuple(replace(each, rack=racks[each.id]) for each in there.brokers))


def with_partition(there: Snapshot, name: TopicPartition, **change: object) -> Snapshot:
    topic = there.topic[name.topic]
    partitions = list(topic.partitions)
    partitions[name.partition] = partitions[name.partition]._replace(**change)
    changed = replace(topic, partitions=tuple(partitions))
    return replace(there, topics=tuple(changed if each is topic else each for each in there.topics))


def without_broker(there: Snapshot, dead: int) -> Snapshot:
    """Return the same cluster with a dead broker: others lead what they can."""

    def after(partition: Partition) -> Partition:
        isr = tuple(each for each in partition.isr if each != dead)
        return partition._replace(
            isr=isr or partition.isr,
            leader=isr[0] if isr else None,
            copies=tuple(each for each in partition.copies if each.broker != dead),
        )

    return replace(
        there,
        brokers=tuple(each for each in there.brokers if each.id != dead),
        topics=tuple(
            replace(topic, partitions=tuple(map(after, topic.partitions))) for topic in there.topics
        ),
    )


def planned(there: Snapshot, request: PlanRequest) -> Plan:
    plan = propose(there, None, request)
    assert not evaluate(there, None, plan.moves, request).violations
    return plan


def names(plan: Plan) -> list[str]:
    return [str(each.partition) for each in plan.leaves]


@pytest.mark.parametrize("dead", [False, True])
def test_replacement_takes_exactly_the_same_places_in_the_same_rack(dead: bool) -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "d", 6: "d"}
    there = racked(snapshot({"t": ROWS, "u": [(6, 1)]}, brokers=(1, 2, 3, 4, 6)), racks)
    there = without_broker(there, 4) if dead else there
    plan = planned(there, PlanRequest(replace={4: 6}))
    after = {str(move.partition): move.after for move in plan.moves}
    assert after == {"t-0": (6, 1, 2), "t-1": (1, 6, 2), "t-2": (1, 2, 6), "t-4": (6, 2, 3)}
    assert plan.promises == (Promise(kind="replaced", brokers=(4, 6)),)
    assert not plan.leaves


def test_replacement_in_a_rack_with_a_replica_is_refused_without_any_rack() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "d", 6: "a"}
    there = racked(snapshot({"t": ROWS}, brokers=(1, 2, 3, 4, 6)), racks)
    with pytest.raises(
        InvalidInput, match=re.escape("broker 4 is in rack 'd', but broker 6 in rack 'a'")
    ) as told:
        propose(there, None, PlanRequest(replace={4: 6}))
    assert "of 3 partitions: t-0, t-1, t-2." in str(told.value)
    assert "--any-rack" in str(told.value)
    plan = planned(there, PlanRequest(replace={4: 6}, any_rack=True))
    assert [move.after for move in plan.moves] == [(6, 1, 2), (1, 6, 2), (1, 2, 6), (6, 2, 3)]


def test_replacement_with_a_replica_already_is_refused_with_the_partition() -> None:
    there = snapshot({"t": [(4, 1), (4, 6)]}, brokers=(1, 2, 4, 6))
    with pytest.raises(InvalidInput, match=r"of 1 partitions it has a replica already: t-1\."):
        propose(there, None, PlanRequest(replace={4: 6}))


def test_replacement_without_room_is_refused_instead_of_using_others() -> None:
    there = snapshot({"t": [(4, 1), (1, 4)]}, brokers=(1, 2, 4, 6), used={6: 899 * 10**9})
    with pytest.raises(InvalidInput, match="no log dir of broker 6 has room"):
        propose(there, None, PlanRequest(replace={4: 6}))


def test_drain_lists_what_it_must_leave_behind_and_why() -> None:
    there = snapshot({"t": [(3, 1), (3,), (1, 3), (2, 3)], "x": [(3, 2)]}, brokers=(1, 2, 3, 4))
    there = without_broker(there, 3)
    there = with_partition(there, TopicPartition("t", 2), replicas=(1, 3, 4), adding=(4,), removing=(3,))
    request = PlanRequest(
        drain=frozenset({3}),
        except_topics=("x",),
        except_partitions=frozenset({TopicPartition("t", 3)}),
    )
    plan = planned(there, request)
    assert [str(move.partition) for move in plan.moves] == ["t-0"]
    why = {str(each.partition): each.why for each in plan.leaves}
    assert why == {
        "t-1": "stays on broker 3: its only replica is on broker 3, which is down",
        "t-2": "stays on broker 3: it is being moved (adding 4, removing 3)",
        "t-3": "stays on broker 3: it is excluded (--exclude-partitions)",
        "x-0": "stays on broker 3: its topic is excluded (--exclude-topics)",
    }


def test_plan_with_promises_says_which_partitions_it_knows() -> None:
    made = planned(snapshot({"t": [(0, 1)] * 3, "u": [(1, 2)]}), PlanRequest(balance=True))
    assert made.known_partitions == {"t": 3, "u": 1}


def test_drain_of_some_topics_is_complete_when_these_are_gone() -> None:
    there = snapshot({"t": [(3, 1)], "x": [(3, 2)]}, brokers=(1, 2, 3, 4))
    plan = planned(there, PlanRequest(drain=frozenset({3}), only_topics=("t",)))
    assert not plan.leaves
    assert plan.promises == (Promise(kind="drained", brokers=(3,), topics=("t",)),)
    assert plan.title == "drain 3; only topics t"


def test_drain_that_can_move_nothing_is_a_plan_that_lists_everything() -> None:
    there = without_broker(snapshot({"t": [(3,), (3,)]}, brokers=(1, 2, 3)), 3)
    plan = planned(there, PlanRequest(drain=frozenset({3})))
    assert not plan.moves
    assert names(plan) == ["t-0", "t-1"]


def test_factor_leaves_internal_topics_alone_unless_they_are_named() -> None:
    there = snapshot({"__consumer_offsets": [(1, 2)], "t": [(1, 2)]}, brokers=(1, 2, 3))
    there = replace(there, topics=(replace(there.topics[0], internal=True), there.topics[1]))
    everything = PlanRequest(replication_factors={"*": 1}, only_topics=("*",))
    plan = planned(there, everything)
    assert [(move.partition.topic, len(move.after)) for move in plan.moves] == [("t", 1)]
    told = explain(there, None, plan, everything)
    assert any(
        "internal topics keep" in note.text and "__consumer_offsets" in note.text for note in told.notes
    )
    named = planned(there, PlanRequest(replication_factors={"__*": 3}))
    assert [(move.partition.topic, len(move.after)) for move in named.moves] == [("__consumer_offsets", 3)]


def test_factor_below_min_insync_replicas_is_refused() -> None:
    there = snapshot({"t": [(1, 2, 3)]}, brokers=(1, 2, 3), least=2)
    with pytest.raises(InvalidInput, match=r"t-0 is to have 1 replicas, but min\.insync\.replicas of t is 2"):
        propose(there, None, PlanRequest(replication_factors={"t": 1}))


def test_factor_lists_partitions_that_keep_theirs() -> None:
    there = with_partition(
        snapshot({"t": [(1, 2), (1, 2)]}, brokers=(1, 2, 3)), TopicPartition("t", 1), adding=(2,)
    )
    plan = planned(there, PlanRequest(replication_factors={"t": 3}))
    assert plan.leaves == (
        Left(partition=TopicPartition("t", 1), why="stays at 2 replicas: it is being moved (adding 2)"),
    )


def test_fix_racks_lists_partitions_that_stay_as_they_are() -> None:
    there = racked(snapshot({"t": [(1, 2), (1, 2)]}, brokers=(1, 2, 3)), {1: "a", 2: "a", 3: "b"})
    there = with_partition(there, TopicPartition("t", 1), leader=None)
    plan = planned(there, PlanRequest(fix_racks=True))
    assert [str(move.partition) for move in plan.moves] == ["t-0"]
    assert names(plan) == ["t-1"]
    assert "stays in 1 of 2 racks" in plan.leaves[0].why


def test_demoted_broker_leads_nothing_and_keeps_its_replicas() -> None:
    there = snapshot({"t": [(3, 1, 2), (1, 3), (3, 2), (2, 3, 1)]}, brokers=(1, 2, 3))
    plan = planned(there, PlanRequest(demote=frozenset({3})))
    assert plan.bytes_to_copy == 0
    assert all(set(move.before) == set(move.after) and move.after[-1] == 3 for move in plan.moves)
    assert {str(move.partition) for move in plan.moves} == {"t-0", "t-2"}
    assert all(move.reason.startswith("demote broker 3: broker ") for move in plan.moves)
    assert plan.promises == (Promise(kind="no_leaders", brokers=(3,)),)
    assert not plan.leaves


def test_demotion_passes_leadership_only_to_replicas_in_sync() -> None:
    there = snapshot({"t": [(3, 1, 2), (3, 1), (3,)]}, brokers=(1, 2, 3))
    there = with_partition(there, TopicPartition("t", 0), isr=(3, 2))
    there = with_partition(there, TopicPartition("t", 1), isr=(3,))
    plan = planned(there, PlanRequest(demote=frozenset({3})))
    assert [move.after for move in plan.moves] == [(2, 1, 3)]
    why = {str(each.partition): each.why for each in plan.leaves}
    assert why == {
        "t-1": "is led by broker 3: no other replica could lead it (in sync: 3)",
        "t-2": "is led by broker 3: all of its replicas are on brokers that are to lead nothing",
    }


def test_demotion_says_where_only_an_election_is_missing() -> None:
    there = with_partition(snapshot({"t": [(1, 3)]}, brokers=(1, 2, 3)), TopicPartition("t", 0), leader=3)
    plan = planned(there, PlanRequest(demote=frozenset({3})))
    assert not plan.moves
    assert "although broker 1 is its first replica" in plan.leaves[0].why


def test_leader_stays_where_another_replica_is_out_of_sync() -> None:
    rows = [(1, 2)] * 6
    there = snapshot({"t": rows}, brokers=(1, 2))
    request = PlanRequest(leaders=True)
    in_sync = propose(there, None, request).moves
    assert in_sync
    assert not evaluate(there, None, in_sync, request).violations
    for number in range(6):
        there = with_partition(there, TopicPartition("t", number), isr=(1,))
    assert {each.rule for each in evaluate(there, None, in_sync, request).violations} == {"led"}
    plan = propose(there, None, request)
    assert not plan.moves
    (note,) = [each for each in explain(there, None, plan, request).notes if "lags behind" in each.text]
    assert len(note.partitions) == 6


def test_move_that_only_reorders_is_explained_by_leadership() -> None:
    sizes = (9, 1, 1, 1)
    there = snapshot({"t": [(1, 2)] * 4}, brokers=(1, 2))
    for number, size in enumerate(sizes):
        there = with_partition(
            there,
            TopicPartition("t", number),
            copies=tuple(Copy(broker=each, log_dir="/d", size_bytes=size * 10**9) for each in (1, 2)),
        )
    plan = planned(there, PlanRequest(balance=True))
    assert plan.moves
    for move in plan.moves:
        assert set(move.before) == set(move.after)
        assert move.reason.startswith("leaders: broker 1 leads too much, broker 2 leads instead")


def test_move_that_adds_a_replica_says_who_leads_instead() -> None:
    there = snapshot({"t": [(1, 2)] * 6}, brokers=(1, 2, 3))
    plan = planned(there, PlanRequest(replication_factors={"t": 3}))
    passed_on = {move.after[0]: move.reason for move in plan.moves if move.after[0] != 1}
    assert {move.reason for move in plan.moves if move.after[0] == 1} == {"replication factor: one more"}
    assert passed_on == {
        broker: f"replication factor: one more; broker {broker} leads instead of 1" for broker in (2, 3)
    }


def test_balance_warns_of_partitions_that_stay_in_one_rack() -> None:
    there = racked(
        snapshot({"t": [(1, 2), (3, 4), (1, 3), (2, 4)]}, brokers=(1, 2, 3, 4)),
        {1: "a", 2: "a", 3: "b", 4: "b"},
    )
    request = PlanRequest(balance=True)
    told = explain(there, None, planned(there, request), request)
    (note,) = [note for note in told.notes if "in one rack" in note.text]
    assert note.warning
    assert list(map(str, note.partitions)) == ["t-0", "t-1"]
    assert "fix-racks" in note.advice
    fixed = PlanRequest(fix_racks=True)
    assert not [
        note
        for note in explain(there, None, planned(there, fixed), fixed).notes
        if "in one rack" in note.text
    ]


def test_plan_made_during_other_moves_warns_and_names_them() -> None:
    racks = {1: "a", 2: "b", 3: "b"}
    there = racked(snapshot({"t": [(1, 2), (1, 2)]}, brokers=(1, 2, 3)), racks)
    there = with_partition(there, TopicPartition("t", 0), replicas=(1, 2, 3), adding=(3,), removing=(2,))
    request = PlanRequest(balance=True)
    told = explain(there, None, planned(there, request), request)
    (note,) = [note for note in told.notes if "being moved" in note.text]
    assert note.warning
    assert list(map(str, note.partitions)) == ["t-0"]
    assert not [note for note in told.notes if "more replicas than" in note.text]


def test_unrequested_goal_is_reported_when_it_is_out_of_band() -> None:
    there = snapshot({"t": [(1,)] * 8 + [(2,)] * 4}, brokers=(1, 2, 3))
    request = PlanRequest(drain=frozenset({3}))
    told = explain(there, None, planned(there, request), request)
    replicas = next(goal for goal in told.goals if goal.name == "replicas")
    assert not replicas.asked
    assert replicas.out_of_band == 2
    assert replicas.after[0] == pytest.approx(8 / 6)


def test_counted_goal_says_what_is_allowed() -> None:
    there = snapshot({"t": [(broker,) for broker in range(6)] * 5 + [(0,), (1,), (2,), (3,)]})
    request = PlanRequest(balance=True)
    told = explain(there, None, planned(there, request), request)
    leaders = next(goal for goal in told.goals if goal.name == "leaders")
    assert leaders.asked
    assert leaders.allowed is not None
    assert leaders.allowed[0] == pytest.approx(5 / (34 / 6))
    low, high = leaders.allowed
    assert low <= leaders.after[1] <= leaders.after[0] <= high
    assert leaders.out_of_band == 0


@pytest.mark.parametrize("seed", range(4))
def test_balance_copies_nothing_where_other_leaders_are_enough(seed: int) -> None:
    there = racked(
        snapshot({"t": [(1, 2), (3, 4), (1, 3), (2, 4)]}, brokers=(1, 2, 3, 4)),
        {1: "a", 2: "a", 3: "b", 4: "b"},
    )
    plan = planned(there, PlanRequest(balance=True, seed=seed))
    assert plan.moves
    assert plan.bytes_to_copy == 0


def test_smaller_factor_with_a_drain_keeps_the_racks() -> None:
    there = racked(snapshot({"t": [(3, 1, 0)]}, brokers=(0, 1, 2, 3)), {0: "a", 1: "b", 2: "a", 3: "b"})
    plan = planned(there, PlanRequest(drain=frozenset({0}), replication_factors={"t": 2}))
    assert {broker % 2 for move in plan.moves for broker in move.after} == {0, 1}


def test_empty_replicas_are_spread_over_log_dirs_by_number() -> None:
    there = snapshot({"t": [(1,)] * 6}, brokers=(1, 2), size=0, dirs=("/a", "/b"))
    plan = planned(there, PlanRequest(drain=frozenset({1})))
    assert sorted(move.log_dirs[0] for move in plan.moves) == ["/a"] * 3 + ["/b"] * 3


def test_log_dirs_that_stay_uneven_are_named() -> None:
    request = PlanRequest(disks=True)
    there = snapshot({"t": [(1,), (2,), (2,)]}, brokers=(1, 2), dirs=("/a", "/b"))
    plan = planned(there, request)
    assert [move.dir_changes for move in plan.moves] == [{2: "/b"}]
    told = explain(there, None, plan, request)
    assert told.between_brokers_bytes == 0
    assert told.copied_bytes == 10**9
    (note,) = [each for each in told.notes if "out of band" in each.text]
    assert note.warning
    assert "2 log dirs stay out of band: 1:/a at 2.00 × its share, 1:/b at 0.00 × its share" in note.text
    single = snapshot({"t": [(1,)]}, brokers=(1, 2))
    said = explain(single, None, planned(single, request), request).notes
    assert any("more than one log dir" in each.text for each in said)
