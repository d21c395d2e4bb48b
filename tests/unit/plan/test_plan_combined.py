"""Requests in any combination, on any small cluster: the judge finds no broken rule, at any moment."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from restow.errors import InvalidInput
from restow.model import Copy, Limits, Move, Plan, Step, TopicPartition
from restow.plan.judge.evaluate import evaluate
from restow.plan.judge.waves import waves_broken
from restow.plan.propose import propose
from restow.plan.request.request import PlanRequest
from tests.often import of_many
from tests.unit.plan.clusters import snapshot

from test_plan_propose import COUNTED, cluster, loads  # isort: skip

if TYPE_CHECKING:
    from restow.plan.judge.scores import Score

BAND = 0.09


@st.composite
def targets(draw: st.DrawFn) -> PlanRequest:
    """Draw a request with one demand or several, now and then with exclusions."""

    def now_and_then(value: object, otherwise: object, odds: int = 4) -> object:
        return value if draw(st.integers(1, odds)) == 1 else otherwise

    request = PlanRequest(
        balance=draw(st.booleans()),
        leaders=now_and_then(True, False),
        disks=now_and_then(True, False),
        fix_racks=now_and_then(True, False),
        spread_topics=now_and_then(True, False),
        add=now_and_then(frozenset({1}), frozenset()),
        drain=now_and_then(frozenset({0}), frozenset(), 3),
        demote=now_and_then(frozenset({1, 5}), frozenset(), 5),
        cordon=now_and_then(frozenset({3}), frozenset(), 5),
        replace=now_and_then({2: 3}, {}, 6),
        any_rack=draw(st.booleans()),
        replication_factors=now_and_then({draw(st.sampled_from(["t0", "*"])): draw(st.integers(1, 4))}, {}),
        relieve=now_and_then({"disk": 1.2}, {}),
        bands=now_and_then({"disk": 0.02, "replicas": 0.3}, {}),
        only_topics=now_and_then(("t0", "t2"), (), 6),
        except_topics=now_and_then(("t1",), (), 6),
        except_brokers=now_and_then(frozenset({4}), frozenset(), 6),
        except_partitions=now_and_then(frozenset({TopicPartition("t0", 0)}), frozenset(), 6),
        most_moves=now_and_then(draw(st.integers(0, 40)), None, 6),
        most_bytes=now_and_then(draw(st.integers(0, 10**9)), None, 6),
        fill=draw(st.sampled_from([0.9, 0.9, 0.5])),
        seed=draw(st.integers(0, 3)),
    )
    some = request.sheds or request.leaders or request.disks or request.fix_racks or request.leaving
    some = some or request.demote
    return request if some or request.replication_factors else replace(request, balance=True)


shapes = st.fixed_dictionaries(
    {
        "brokers": st.integers(2, 7),
        "partitions": st.integers(3, 40),
        "replication_factor": st.integers(1, 3),
        "racks": st.integers(0, 4),
        "dirs": st.integers(1, 3),
        "shut": st.sampled_from([0, 0, 0, 1, 2]),
        "seed": st.integers(0, 10_000),
    }
)


def judge(shape: dict[str, int], dead: bool, loaded: bool, request: PlanRequest) -> None:
    down = frozenset({shape["brokers"] - 1}) if dead and shape["brokers"] > 2 else frozenset[int]()
    shut = shape.get("shut", 0)
    snapshot = cluster(
        **{**shape, "replication_factor": min(shape["replication_factor"], shape["brokers"])}, down=down
    )
    load = loads(snapshot, shape["seed"]) if loaded else None
    try:
        plan = propose(snapshot, load, request)
    except InvalidInput:
        event("refused")
        return
    event("moves" if plan.moves else "nothing to move")
    judgement = evaluate(snapshot, load, plan.moves, request)
    assert not judgement.violations, {each.rule + each.what for each in judgement.violations}
    assert not list(waves_broken(snapshot, plan))
    cordoned = {broker.id for broker in snapshot.brokers if all(each.cordoned for each in broker.log_dirs)}
    for move in plan.moves:
        assert not {*move.adding} & (request.cordon | cordoned)
    must = (
        request.leaving
        or request.replication_factors
        or request.fix_racks
        or request.demote
        or request.cordon
        or shut
    )
    if not must and not request.spread_topics:
        for name, score in judgement.scores.items():
            assert out(score, request, after=True) <= out(score, request, after=False) + 1e-6, name
    if request.spread_topics and not must:
        for before, after in judgement.crowded.values():
            assert after <= before


def out(score: Score, request: PlanRequest, *, after: bool) -> float:
    band = request.bands.get(score.goal, BAND)
    if score.goal in request.relieve and not request.balance:
        band = request.relieve[score.goal] - 1
    assert band is not None
    return score.out_of_band(band, after=after, counted=score.goal in COUNTED)


@settings(max_examples=of_many(30, often=10), deadline=None)
@given(shape=shapes, dead=st.booleans(), loaded=st.booleans(), request=targets())
@example(
    shape={"brokers": 4, "partitions": 4, "replication_factor": 3, "racks": 2, "dirs": 1, "seed": 0},
    dead=True,
    loaded=False,
    request=PlanRequest(balance=True),
)
@example(
    shape={"brokers": 6, "partitions": 40, "replication_factor": 3, "racks": 3, "dirs": 2, "seed": 1},
    dead=False,
    loaded=True,
    request=PlanRequest(
        balance=True,
        drain=frozenset({0}),
        add=frozenset({5}),
        disks=True,
        fix_racks=True,
        replication_factors={"t0": 2},
    ),
)
@example(
    shape={"brokers": 6, "partitions": 8, "replication_factor": 3, "racks": 3, "dirs": 1, "seed": 1},
    dead=False,
    loaded=False,
    request=PlanRequest(
        replace={2: 3},
        any_rack=True,
        fix_racks=True,
        demote=frozenset({1, 5}),
        replication_factors={"t0": 1},
        only_topics=("t0", "t2"),
        except_topics=("t1",),
        except_brokers=frozenset({4}),
    ),
)
@example(
    shape={"brokers": 5, "partitions": 16, "replication_factor": 3, "racks": 0, "dirs": 2, "seed": 841},
    dead=False,
    loaded=True,
    request=PlanRequest(
        balance=True,
        leaders=True,
        disks=True,
        add=frozenset({1}),
        relieve={"disk": 1.2},
        bands={"disk": 0.02, "replicas": 0.3},
        spread_topics=True,
        only_topics=("t0", "t2"),
        except_partitions=frozenset({TopicPartition("t0", 0)}),
        except_brokers=frozenset({4}),
        most_bytes=0,
    ),
)
def test_plan_breaks_no_rule(shape: dict[str, int], dead: bool, loaded: bool, request: PlanRequest) -> None:
    judge(shape, dead, loaded, request)


@pytest.mark.full
@settings(max_examples=1500, deadline=None)
@given(shape=shapes, dead=st.booleans(), loaded=st.booleans(), request=targets())
def test_plan_breaks_no_rule_in_many_more_cases(
    shape: dict[str, int], dead: bool, loaded: bool, request: PlanRequest
) -> None:
    judge(shape, dead, loaded, request)


@settings(max_examples=5, deadline=None)
@given(shape=shapes, request=targets())
def test_same_request_gives_the_same_plan_in_any_combination(
    shape: dict[str, int], request: PlanRequest
) -> None:
    plans = []
    for _ in range(2):
        snapshot = cluster(
            **{**shape, "replication_factor": min(shape["replication_factor"], shape["brokers"])}
        )
        try:
            plans.append(propose(snapshot, loads(snapshot), request))
        except InvalidInput as refusal:
            plans.append(str(refusal))
    assert plans[0] == plans[1]


def a_plan(*steps: Step, limits: Limits | None = None, size: int = 0) -> Plan:
    of = steps[0].partition
    move = Move(partition=of, before=steps[0].before, after=steps[-1].after, size_bytes=size)
    return Plan(
        cluster_id="c",
        created_ms=0,
        moves=(move,),
        waves=tuple((step,) for step in steps),
        limits=limits or Limits(),
    )


def test_judge_of_waves_finds_rules_broken_midway() -> None:
    snapshot = cluster(brokers=5, racks=0, replication_factor=2, partitions=6)
    name, partition = next(iter(snapshot.all_partitions()))
    one, two = partition.replicas
    others = tuple(broker for broker in range(5) if broker not in (one, two))
    good = Step(partition=name, before=(one, two), after=(one, others[0]), size_bytes=5)
    assert not list(waves_broken(snapshot, a_plan(good)))

    def rules(plan: Plan) -> set[str]:
        return {each.rule for each in waves_broken(snapshot, plan)}

    assert rules(a_plan(replace(good, size_bytes=10**9))) == {"room"}
    both = replace(good, after=(others[0], others[1]))
    assert rules(a_plan(both)) == {"extra copies"}
    assert rules(a_plan(good, good)) == {"in order"}
    assert rules(a_plan(good, limits=Limits(moves_in=0))) == {"moves in"}
    unfinished = replace(a_plan(good), waves=())
    assert rules(unfinished) == {"arrives"}
    twice = replace(a_plan(good), waves=((good, good),))
    assert "one at a time" in rules(twice)


def test_judge_of_topics_counts_replicas_beyond_a_brokers_share() -> None:
    snapshot = cluster(brokers=4, racks=0, replication_factor=1, partitions=12)
    (topic, *_) = snapshot.topics
    here = tuple(
        each._replace(replicas=(0,), isr=(0,), leader=0, copies=(Copy(broker=0, log_dir="/d", size_bytes=1),))
        for each in topic.partitions
    )
    crowd = replace(snapshot, topics=(replace(topic, partitions=here),))
    share = math.ceil(len(here) / 4)
    found = evaluate(crowd, None, (), PlanRequest(balance=True, spread_topics=True)).crowded
    assert found["topic_replicas"] == (len(here) - share, len(here) - share)
    assert found["topic_leaders"] == (len(here) - share, len(here) - share)
    request = PlanRequest(balance=True, spread_topics=True)
    after = evaluate(crowd, None, propose(crowd, None, request).moves, request).crowded
    assert after["topic_replicas"][1] == 0


def test_dead_broker_that_has_too_many_of_a_topic_keeps_them() -> None:
    seen = snapshot({"t": [(0, 3), (1, 3), (2, 3), (0, 3), (1, 3), (2, 3)]}, brokers=(0, 1, 2))
    request = PlanRequest(balance=True, spread_topics=True, bands={"disk": None, "replicas": None})
    plan = propose(seen, None, request)
    assert not any(3 in move.removing for move in plan.moves)
    assert plan.bound_bytes == 0


def test_bound_counts_no_replica_that_a_smaller_replication_factor_could_drop() -> None:
    seen = snapshot({"t": [(0, 1, 2), (0, 1, 2), (0, 1, 3), (0, 1, 3)]}, brokers=range(4))
    request = PlanRequest(
        balance=True,
        spread_topics=True,
        replication_factors={"t": 2},
        bands={"disk": None, "replicas": None, "leaders": None},
    )
    plan = propose(seen, None, request)
    assert (plan.bytes_to_copy, plan.bound_bytes) == (0, 0)
