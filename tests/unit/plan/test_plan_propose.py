"""Plans for random clusters and requests, judged by code that the planner does not share."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from restow.errors import InvalidInput
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic, TopicPartition
from restow.model.load import LoadModel, Resource
from restow.plan.judge.evaluate import evaluate
from restow.plan.planning import make_plan
from restow.plan.propose import propose
from restow.plan.request.request import PlanRequest
from tests.often import of_many

COUNTED = {"replicas", "leaders"}


def cluster(
    *,
    brokers: int = 6,
    partitions: int = 40,
    replication_factor: int = 3,
    racks: int = 3,
    dirs: int = 1,
    down: frozenset[int] = frozenset(),
    shut: int = 0,
    disk_bytes: int | None = 10**9,
    seed: int = 1,
) -> Snapshot:
    """Return a cluster skewed towards the first brokers, with sizes up to a few percent of a disk.

    The first `shut` log dirs of broker 1 are cordoned. Now and then a follower has a size of its own.
    """
    rng = np.random.default_rng(seed)
    odds = np.linspace(1.6, 0.4, brokers)
    sizes = rng.exponential(
        0.2 * 10**9 * brokers / max(partitions * replication_factor, 1), partitions
    ).astype(int)
    paths = [f"/data{number}" for number in range(dirs)]
    used: dict[tuple[int, str], int] = {}
    found = []
    for number in range(partitions):
        replicas = tuple(
            int(each) for each in rng.choice(brokers, replication_factor, replace=False, p=odds / odds.sum())
        )
        live = [each for each in replicas if each not in down]
        copies = []
        for broker in live:
            path = paths[int(rng.integers(dirs)) if number % 3 else 0]
            own = int(sizes[number]) // (3 if number % 7 == 1 and broker != live[0] else 1)
            used[broker, path] = used.get((broker, path), 0) + own
            copies.append(Copy(broker=broker, log_dir=path, size_bytes=own))
        found.append(
            Partition(
                number=number // 3,
                replicas=replicas,
                isr=tuple(live),
                leader=live[0] if live else None,
                copies=tuple(copies),
            )
        )
    topics = tuple(
        Topic(name=f"t{rest}", partitions=tuple(found[rest::3])) for rest in range(3) if found[rest::3]
    )
    there = tuple(
        LiveBroker(
            id=broker,
            host="h",
            port=1,
            rack=f"r{broker % racks}" if racks else None,
            log_dirs=tuple(
                LogDir(
                    path=path,
                    total_bytes=None if disk_bytes is None else disk_bytes,
                    usable_bytes=None
                    if disk_bytes is None
                    else max(0, disk_bytes - used.get((broker, path), 0)),
                    cordoned=broker == 1 and at < shut,
                )
                for at, path in enumerate(paths)
            ),
        )
        for broker in range(brokers)
        if broker not in down
    )
    return Snapshot(cluster_id="c", taken_ms=0, controller=0, brokers=there, topics=topics)


def loads(snapshot: Snapshot, seed: int = 1) -> LoadModel:
    rng = np.random.default_rng(seed)
    names = tuple(name for name, _ in snapshot.all_partitions())
    coming = rng.exponential(1e5, len(names))
    return LoadModel(
        cluster_id="c",
        made_ms=0,
        partitions=names,
        resources={
            "bytes_in": Resource(leading=coming, following=coming),
            "bytes_out": Resource(leading=coming * 2, following=np.zeros(len(names))),
            "cpu": Resource(leading=coming / 1e5, following=coming / 3e5),
        },
    )


requests = st.one_of(
    st.just(PlanRequest(balance=True)),
    st.just(PlanRequest(balance=True, bands={"disk": 0.02, "replicas": 0.3})),
    st.just(PlanRequest(balance=True, spread_topics=True)),
    st.just(PlanRequest(balance=True, except_topics=("t1",), except_brokers=frozenset({2}))),
    st.just(PlanRequest(balance=True, most_moves=5)),
    st.just(PlanRequest(balance=True, most_bytes=20_000_000)),
    st.just(PlanRequest(add=frozenset({1}))),
    st.just(PlanRequest(leaders=True)),
    st.just(PlanRequest(disks=True)),
    st.just(PlanRequest(disks=True, leaders=True, only_topics=("t0",))),
    st.just(PlanRequest(fix_racks=True)),
    st.just(PlanRequest(drain=frozenset({0}))),
    st.just(PlanRequest(drain=frozenset({0}), balance=True, disks=True)),
    st.just(PlanRequest(replace={0: 1})),
    st.just(PlanRequest(replication_factors={"t0": 2})),
    st.just(PlanRequest(replication_factors={"t*": 1}, balance=True)),
    st.just(PlanRequest(replication_factors={"*": 3}, fix_racks=True)),
    st.just(PlanRequest(relieve={"disk": 1.2})),
)


@settings(max_examples=of_many(20, often=8), deadline=None)
@given(
    brokers=st.integers(2, 7),
    partitions=st.integers(3, 40),
    replication_factor=st.integers(1, 3),
    racks=st.integers(0, 4),
    dirs=st.integers(1, 3),
    dead=st.booleans(),
    loaded=st.booleans(),
    request=requests,
    seed=st.integers(0, 10_000),
)
def test_judge_finds_no_broken_rule(
    brokers: int,
    partitions: int,
    replication_factor: int,
    racks: int,
    dirs: int,
    dead: bool,
    loaded: bool,
    request: PlanRequest,
    seed: int,
) -> None:
    snapshot = cluster(
        brokers=brokers,
        partitions=partitions,
        replication_factor=min(replication_factor, brokers),
        racks=racks,
        dirs=dirs,
        down=frozenset({brokers - 1}) if dead and brokers > 2 else frozenset(),
        seed=seed,
    )
    load = loads(snapshot, seed) if loaded else None
    try:
        plan = propose(snapshot, load, request)
    except InvalidInput:
        event("refused")
        return
    event("moves" if plan.moves else "nothing to move")
    judgement = evaluate(snapshot, load, plan.moves, request)
    assert not judgement.violations
    assert {step.partition for wave in plan.waves for step in wave} == {move.partition for move in plan.moves}
    if request == PlanRequest(balance=True):
        for name, score in judgement.scores.items():
            counted = name in COUNTED
            before = score.out_of_band(0.09, after=False, counted=counted)
            assert score.out_of_band(0.09, counted=counted) <= before + 1e-6, name
    if plan.bound_bytes is not None and all(
        score.out_of_band(0.09, counted=name in COUNTED) < 1e-9 for name, score in judgement.scores.items()
    ):
        between_brokers = sum(move.size_bytes * len(move.adding) for move in plan.moves)
        if request == PlanRequest(balance=True):
            assert between_brokers >= plan.bound_bytes * (1 - 1e-9)


def test_same_request_gives_the_same_plan() -> None:
    snapshot = cluster()
    first, second = (propose(snapshot, loads(snapshot), PlanRequest(balance=True)) for _ in range(2))
    assert first == second


def test_leaders_request_copies_no_byte() -> None:
    snapshot = cluster(partitions=60)
    plan = propose(snapshot, loads(snapshot), PlanRequest(leaders=True))
    assert plan.moves
    assert plan.bytes_to_copy == 0
    assert all(set(move.before) == set(move.after) for move in plan.moves)


def test_disks_request_balances_log_dirs_within_brokers() -> None:
    snapshot = cluster(dirs=2, partitions=90)
    plan = propose(snapshot, None, PlanRequest(disks=True))
    assert plan.moves
    assert all(move.before == move.after and move.dir_changes for move in plan.moves)


@pytest.mark.parametrize("is_dead", [False, True])
def test_replace_moves_only_the_replicas_of_the_broker(is_dead: bool) -> None:
    snapshot = cluster(brokers=7, racks=0)
    had = {name for name, partition in snapshot.all_partitions() if 0 in partition.replicas}
    for_nine = Snapshot(
        cluster_id="c",
        taken_ms=0,
        controller=1,
        topics=snapshot.topics,
        brokers=(
            *(each for each in snapshot.brokers if each.id != 0 or not is_dead),
            LiveBroker(id=9, host="h", port=1, log_dirs=snapshot.brokers[6].log_dirs),
        ),
    )
    plan = propose(for_nine, None, PlanRequest(replace={0: 9}))
    assert {move.partition for move in plan.moves} == had
    for move in plan.moves:
        assert move.adding == (9,)
        assert move.removing == (0,)
        assert move.before[0] != 0 or move.after[0] == 9
    assert plan.bytes_to_copy == plan.bound_bytes


def test_propose_returns_a_valid_plan_when_time_is_up() -> None:
    snapshot = cluster()
    request = PlanRequest(drain=frozenset({0}), balance=True)
    plan = propose(snapshot, None, request, lambda: True)
    assert not evaluate(snapshot, None, plan.moves, request).violations


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (PlanRequest(drain=frozenset({42})), "unknown brokers 42"),
        (
            PlanRequest(drain=frozenset(range(4))),
            "add 1 or let 1 fewer leave, or lower its replication factor to 2",
        ),
        (PlanRequest(drain=frozenset(range(6))), "no broker is left"),
        (PlanRequest(balance=True, only_topics=("nope*",)), "no topic is called 'nope*'"),
        (PlanRequest(balance=True, except_topics=("*",)), "every partition is excluded"),
        (PlanRequest(balance=True, bands={"speed": 0.1}), "there is no goal 'speed'"),
        (PlanRequest(balance=True, bands={"disk": float("nan")}), "cannot be a band"),
        (PlanRequest(replication_factors={"t0": 0}), "at least 1"),
        (PlanRequest(replication_factors={"t0": 7}), "only 6 brokers"),
        (PlanRequest(replace={0: 0}), "choose one"),
        (PlanRequest(drain=frozenset({0}), most_bytes=10), "allow"),
        (
            PlanRequest(balance=True, except_partitions=frozenset({TopicPartition("t0", 99)})),
            "no partition t0-99",
        ),
    ],
)
def test_impossible_request_is_refused_with_advice(request_: PlanRequest, says: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(says)):
        propose(cluster(), None, request_)


def test_drain_that_does_not_fit_says_how_much_is_missing() -> None:
    snapshot = cluster(brokers=4, racks=0, partitions=30, disk_bytes=400_000_000)
    with pytest.raises(InvalidInput, match=r"fit nowhere.*bytes|has to move, but cannot"):
        propose(snapshot, None, PlanRequest(drain=frozenset({0, 1}), replication_factors={"*": 2}, fill=0.5))


@pytest.mark.parametrize("value", [float("nan"), -1.0, float("inf")])
def test_invalid_loads_are_refused(value: float) -> None:
    snapshot = cluster()
    load = loads(snapshot)
    load.resources["bytes_in"].leading[3] = value
    with pytest.raises(InvalidInput, match="loads are from 0 to"):
        propose(snapshot, load, PlanRequest(balance=True))


def test_load_model_without_some_partitions_is_refused() -> None:
    snapshot = cluster()
    load = loads(cluster(partitions=39))
    with pytest.raises(InvalidInput, match="knows nothing of 1 of 40 partitions"):
        propose(snapshot, load, PlanRequest(balance=True))


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf")])
def test_capacity_that_no_broker_can_have_is_refused(capacity: float) -> None:
    snapshot = cluster()
    load = loads(snapshot)
    wrong = replace(load.resources["bytes_in"], capacity={4: capacity})
    with pytest.raises(InvalidInput, match=r"broker 4 has a capacity of .* bytes_in: give a number above 0"):
        propose(
            snapshot,
            replace(load, resources={**load.resources, "bytes_in": wrong}),
            PlanRequest(balance=True),
        )


@pytest.mark.parametrize(
    ("total", "usable", "says"),
    [
        (0, 0, "file system of 0 bytes"),
        (100, 101, "101 usable bytes of 100, which contradict each other"),
        (100, -1, "-1 usable bytes of 100, which contradict each other"),
    ],
)
def test_log_dir_with_impossible_sizes_is_refused(total: int, usable: int, says: str) -> None:
    snapshot = cluster()
    odd = LogDir(path="/data0", total_bytes=total, usable_bytes=usable)
    brokers = (*snapshot.brokers[:-1], replace(snapshot.brokers[-1], log_dirs=(odd,)))
    with pytest.raises(InvalidInput, match=f"log dir /data0 of broker 5 .*{re.escape(says)}"):
        propose(replace(snapshot, brokers=brokers), None, PlanRequest(balance=True))


@pytest.mark.parametrize("replicas", [(2, 2), (1, 2, 1), (0, 1, 2, 0)])
def test_partition_that_lists_a_broker_twice_is_refused(replicas: tuple[int, ...]) -> None:
    snapshot = cluster()
    topic = snapshot.topics[1]
    odd = topic.partitions[4]._replace(replicas=replicas)
    partitions = (*topic.partitions[:4], odd, *topic.partitions[5:])
    topics = (snapshot.topics[0], replace(topic, partitions=partitions), snapshot.topics[2])
    with pytest.raises(
        InvalidInput, match=rf"broker {replicas[-1]} twice among the replicas of t1-4: take a"
    ):
        propose(replace(snapshot, topics=topics), None, PlanRequest(balance=True))


def test_search_that_is_told_to_stop_gives_a_sound_plan_with_all_that_must_move() -> None:
    snapshot = cluster()
    request = PlanRequest(balance=True, drain=frozenset({2}))
    made = make_plan(snapshot, None, request, told_to_stop=lambda: True)
    assert {move.partition for move in made.plan.moves} >= {
        name for name, partition in snapshot.all_partitions() if 2 in partition.replicas
    }
    assert not any(2 in move.after for move in made.plan.moves)
    whole = make_plan(snapshot, None, request)
    assert whole.plan.bytes_to_copy > made.plan.bytes_to_copy
