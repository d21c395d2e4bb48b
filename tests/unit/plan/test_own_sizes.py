"""Replicas of different sizes: a move copies the leader's, frees the old one's and fills the new one's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.errors import InvalidInput
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic, TopicPartition
from restow.plan.judge.evaluate import evaluate
from restow.plan.judge.waves import waves_broken
from restow.plan.planning import make_plan
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest
from restow.plan.request.trim import load_of
from tests.often import of_many

from test_plan_propose import cluster, loads  # isort: skip

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


@settings(max_examples=of_many(10_000, often=25), deadline=None)
@given(
    brokers=st.integers(2, 7),
    partitions=st.integers(3, 30),
    replication_factor=st.integers(1, 3),
    racks=st.integers(0, 4),
    dirs=st.integers(1, 2),
    loaded=st.booleans(),
    request=st.sampled_from(
        (
            PlanRequest(balance=True),
            PlanRequest(balance=True, bands={"disk": 0.02, "replicas": None, "leaders": None}),
            PlanRequest(drain=frozenset({0}), balance=True),
            PlanRequest(relieve={"disk": 1.2}),
            PlanRequest(balance=True, spread_topics=True),
        )
    ),
    seed=st.integers(0, 10**6),
)
def test_judge_finds_no_broken_rule_whatever_the_sizes(
    brokers: int,
    partitions: int,
    replication_factor: int,
    racks: int,
    dirs: int,
    loaded: bool,
    request: PlanRequest,
    seed: int,
) -> None:
    plain = cluster(
        brokers=brokers,
        partitions=partitions,
        replication_factor=min(replication_factor, brokers),
        racks=racks,
        dirs=dirs,
        seed=seed,
    )
    snapshot = with_sizes_of_their_own(plain, seed)
    load = loads(snapshot, seed) if loaded else None
    try:
        plan = propose(snapshot, load, request)
    except InvalidInput:
        return
    judged = evaluate(snapshot, load, plan.moves, request)
    assert not judged.violations
    assert not list(waves_broken(snapshot, plan))
    if request == PlanRequest(balance=True):
        score = judged.scores["disk"]
        assert score.out_of_band(0.09) <= score.out_of_band(0.09, after=False) + 1e-6
        if all(
            each.out_of_band(0.09, counted=name in {"replicas", "leaders"}) < 1e-9
            for name, each in judged.scores.items()
        ):
            between = sum(move.size_bytes * len(move.adding) for move in plan.moves)
            assert between >= (plan.bound_bytes or 0) * (1 - 1e-9)


def with_sizes_of_their_own(snapshot: Snapshot, seed: int) -> Snapshot:
    """Return the cluster with followers between nothing and one and a half times their leader's size."""
    rng = np.random.default_rng(seed)
    topics, more = [], dict.fromkeys(((b.id, d.path) for b in snapshot.brokers for d in b.log_dirs), 0)
    for topic in snapshot.topics:
        partitions = []
        for partition in topic.partitions:
            copies = []
            for copy in partition.copies:
                factor = 1.0 if copy.broker == partition.leader else float(rng.choice([0.0, 0.1, 1.0, 1.5]))
                own = int(copy.size_bytes * factor)
                more[copy.broker, copy.log_dir] += own - copy.size_bytes
                copies.append(copy._replace(size_bytes=own))
            partitions.append(partition._replace(copies=tuple(copies)))
        topics.append(replace(topic, partitions=tuple(partitions)))
    brokers = tuple(
        replace(
            broker,
            log_dirs=tuple(
                replace(
                    each,
                    usable_bytes=None
                    if each.usable_bytes is None or each.total_bytes is None
                    else min(max(each.usable_bytes - more[broker.id, each.path], 0), each.total_bytes),
                )
                for each in broker.log_dirs
            ),
        )
        for broker in snapshot.brokers
    )
    return replace(snapshot, topics=tuple(topics), brokers=brokers)


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
