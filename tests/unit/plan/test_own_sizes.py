"""Replicas of different sizes: a move copies the leader's, frees the old one's and fills the new one's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.errors import InvalidInput
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic, TopicPartition
from restow.plan.judge.evaluate import evaluate
from restow.plan.planning import make_plan
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest
from restow.plan.request.trim import load_of

from test_plan_propose import cluster  # isort: skip

GB = 10**9


def tiered(
    partitions: int = 12, brokers: int = 4, followers: int = 3, disk: int | None = 100 * GB
) -> Snapshot:
    """Return partitions of 10 GB on broker 0, which leads them, and of 1 GB at their followers."""
    found = tuple(
        Partition(
            number=number,
            replicas=(0, follower),
            isr=(0, follower),
            leader=0,
            copies=(
                Copy(broker=0, log_dir="/d", size_bytes=10 * GB),
                Copy(broker=follower, log_dir="/d", size_bytes=GB),
            ),
        )
        for number in range(partitions)
        for follower in (1 + number % followers,)
    )
    used = {0: 10 * GB * partitions}
    for each in found:
        used[each.replicas[1]] = used.get(each.replicas[1], 0) + GB
    there = tuple(
        LiveBroker(
            id=broker,
            host="h",
            port=1,
            log_dirs=(
                LogDir(path="/d", total_bytes=disk, usable_bytes=disk and max(disk - used.get(broker, 0), 0)),
            ),
        )
        for broker in range(brokers)
    )
    topic = Topic(name="t", partitions=found)
    return Snapshot(cluster_id="c", taken_ms=0, controller=0, brokers=there, topics=(topic,))


def test_loads_count_replicas_with_their_own_sizes() -> None:
    snapshot = tiered(disk=None)
    asked = ask(snapshot, None, PlanRequest(balance=True))
    held = load_of(asked, asked.problem.home, asked.problem.leader)[:, 0]
    assert held.tolist() == [120 * GB, 4 * GB, 4 * GB, 4 * GB]
    assert asked.share[:, 0].tolist() == [33 * GB] * 4


def test_bound_and_plan_copy_what_leaders_have() -> None:
    snapshot = tiered(disk=None)
    request = PlanRequest(balance=True, bands={"replicas": None, "leaders": None, "disk": 0.2})
    plan = propose(snapshot, None, request)
    assert plan.bound_bytes is not None
    copied = sum(move.size_bytes * len(move.adding) for move in plan.moves)
    assert copied >= plan.bound_bytes > 0
    judged = evaluate(snapshot, None, plan.moves, request)
    assert not judged.violations
    assert judged.scores["disk"].out_of_band(0.2) < 1e-9
    assert judged.scores["disk"].before[1] == 4 * GB


def test_room_is_what_a_new_replica_fills_not_what_the_old_one_frees() -> None:
    """Broker 1 frees 1 GB for each follower that leaves, but each one that comes fills 10 GB."""
    snapshot = tiered(partitions=2, brokers=3, followers=1, disk=25 * GB)
    drain = PlanRequest(drain=frozenset({1}))
    plan = propose(snapshot, None, drain)
    assert {frozenset(move.after) for move in plan.moves} == {frozenset({0, 2})}
    assert [move.own_size(1) for move in plan.moves] == [GB, GB]
    small = replace(
        snapshot,
        brokers=(
            *snapshot.brokers[:2],
            replace(
                snapshot.brokers[2], log_dirs=(LogDir(path="/d", total_bytes=15 * GB, usable_bytes=15 * GB),)
            ),
        ),
    )
    with pytest.raises(InvalidInput, match="fit nowhere"):
        propose(small, None, drain)


def test_swap_of_a_small_replica_for_its_full_size_is_counted() -> None:
    """A broker that gives a follower away and gets the same partition back keeps its own replica."""
    asked = ask(tiered(disk=None), None, PlanRequest(balance=True))
    holder = asked.problem.home.copy()
    holder[0], holder[1] = 1, 0
    held = load_of(asked, holder, asked.problem.leader)[:, 0]
    assert held.tolist() == [120 * GB, 4 * GB, 4 * GB, 4 * GB], "the two replicas only exchanged their names"


def test_old_plan_is_kept_where_it_still_brings_everything_into_band() -> None:
    snapshot = cluster(partitions=24)
    narrow, wide = (
        PlanRequest(balance=True, bands=dict.fromkeys(("disk", "replicas", "leaders"), band))
        for band in (0.25, 0.3)
    )
    first = make_plan(snapshot, None, narrow).plan
    assert first.moves
    again = make_plan(snapshot, None, wide, old=first).plan
    assert {move.partition: move.after for move in again.moves} == {
        move.partition: move.after for move in first.moves
    }
    assert make_plan(snapshot, None, wide).plan.moves != first.moves


def test_old_plan_for_another_cluster_is_refused() -> None:
    snapshot = cluster(partitions=12)
    old = make_plan(snapshot, None, PlanRequest(balance=True)).plan
    with pytest.raises(InvalidInput, match="the plan is for cluster c, but this is cluster other"):
        make_plan(replace(snapshot, cluster_id="other"), None, PlanRequest(balance=True), old=old)


def test_old_targets_on_a_broker_that_is_gone_are_replaced() -> None:
    snapshot = cluster(partitions=24, racks=0)
    request = PlanRequest(balance=True)
    old = make_plan(snapshot, None, request).plan
    target = next(move.adding[0] for move in old.moves if move.adding)
    cordoned = replace(request, cordon=frozenset({target}))
    again = make_plan(snapshot, None, cordoned, old=old).plan
    assert all(target not in move.adding for move in again.moves)
    assert not evaluate(snapshot, None, again.moves, cordoned).violations


def test_progress_is_told_with_the_gap() -> None:
    heard = []
    snapshot = cluster(partitions=120, brokers=9, disk_bytes=None)
    make_plan(
        snapshot,
        None,
        PlanRequest(balance=True),
        tell=lambda progress, bound: heard.append((progress, bound)),
    )
    assert heard
    assert all(progress.copied_bytes >= 0 and bound.least_bytes >= 0 for progress, bound in heard)


def test_partition_names_parse_for_explain() -> None:
    why = make_plan(cluster(partitions=30), None, PlanRequest(balance=True)).why()
    with pytest.raises(InvalidInput, match="t0 has partitions 0 to 9"):
        why.of_partition(TopicPartition("t0", 99))
    with pytest.raises(InvalidInput, match="there is no topic 'none'; there are t0, t1, t2"):
        why.of_partition(TopicPartition("none", 0))
    with pytest.raises(InvalidInput, match="there is no broker 77 in this cluster: there are 0, 1, 2"):
        why.of_broker(77)


def test_full_log_dir_takes_no_room_from_the_others_of_its_broker() -> None:
    """Broker 2 has 10 GB more in one log dir than its limit allows, and room for 60 GB in the other."""
    snapshot = tiered(partitions=6, brokers=3, followers=1, disk=100 * GB)
    full = LogDir(path="/full", total_bytes=100 * GB, usable_bytes=0)
    brokers = (*snapshot.brokers[:2], replace(snapshot.brokers[2], log_dirs=(full, tight(65 * GB))))
    plan = propose(replace(snapshot, brokers=brokers), None, PlanRequest(drain=frozenset({1})))
    assert {move.adding for move in plan.moves} == {(2,)}
    assert {path for move in plan.moves for path in move.log_dirs} == {"any", "/d"}
    brokers = (*snapshot.brokers[:2], replace(snapshot.brokers[2], log_dirs=(full, tight(55 * GB))))
    with pytest.raises(InvalidInput, match="fit nowhere"):
        propose(replace(snapshot, brokers=brokers), None, PlanRequest(drain=frozenset({1})))


def tight(usable: int) -> LogDir:
    """Return a log dir of 100 GB, of which 90 may be filled, with so much room up to that."""
    return LogDir(path="/d", total_bytes=100 * GB, usable_bytes=usable + 10 * GB)
