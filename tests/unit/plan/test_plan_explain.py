"""Explanations of plans, comparisons of two, and load model files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from restow.errors import InvalidDocument
from restow.model.load_text import dumps
from restow.model.load_text import loads as load_from
from restow.plan.explain.amounts import by_log_dir
from restow.plan.explain.explain import explain
from restow.plan.judge.compare import compare
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest

from test_plan_propose import cluster, loads  # isort: skip


def test_explanation_has_equal_sums_before_and_after() -> None:
    snapshot = cluster(partitions=90, dirs=2)
    request = PlanRequest(balance=True, disks=True)
    plan = propose(snapshot, loads(snapshot), request)
    told = explain(snapshot, loads(snapshot), plan, request)
    dirs = by_log_dir(snapshot, ask(snapshot, None, request).arrays, plan.moves)
    more = sum(
        move.size_bytes * len(move.adding) - sum(move.sizes[broker] for broker in move.removing)
        for move in plan.moves
    )
    assert more > 0, "some followers are smaller than their leaders"
    for table in (told.brokers, told.racks, dirs):
        assert sum(each.before_bytes for each in table) + more == sum(each.after_bytes for each in table)
        assert sum(each.before_replicas for each in table) == 270
    for broker in told.brokers:
        mine = [each for each in dirs if each.name.partition(":")[0] == broker.name]
        assert sum(each.before_bytes for each in mine) == broker.before_bytes
        assert sum(each.after_bytes for each in mine) == broker.after_bytes
        assert sum(each.after_replicas for each in mine) == broker.after_replicas
    assert sum(told.reasons.values()) == len(plan.moves)
    disk = told.goals[0]
    assert disk.name == "disk"
    assert disk.after[0] < disk.before[0]
    assert told.ratio is not None
    assert told.ratio >= 1


def test_explanation_names_an_unreached_goal_and_its_constraint() -> None:
    snapshot = cluster(partitions=7, replication_factor=1)
    request = PlanRequest(balance=True, bands={"disk": 0.001})
    told = explain(snapshot, None, propose(snapshot, None, request), request)
    assert any(each.goal == "disk" and "single replicas are too large" in each.because for each in told.unmet)
    assert any("no load model" in note.text for note in told.notes)


def test_explanation_names_full_log_dirs_as_the_constraint() -> None:
    snapshot = cluster(partitions=90)
    request = PlanRequest(balance=True, fill=0.0001)
    plan = propose(snapshot, None, request)
    told = {each.because for each in explain(snapshot, None, plan, request).unmet if each.goal == "replicas"}
    assert told
    assert all("with room below" in why for why in told), told


def test_explanation_names_constraints_of_a_plan_that_adds_replicas() -> None:
    snapshot = cluster(partitions=30, replication_factor=1)
    request = PlanRequest(replication_factors={"*": 2})
    told = explain(snapshot, None, propose(snapshot, None, request), request)
    assert told.unmet
    assert all(each.because for each in told.unmet)


def test_explanation_names_a_budget_as_the_constraint() -> None:
    snapshot = cluster(partitions=90)
    request = PlanRequest(balance=True, most_moves=1)
    plan = propose(snapshot, None, request)
    assert len(plan.moves) == 1
    assert any(
        "no more than 1 moves" in each.because for each in explain(snapshot, None, plan, request).unmet
    )


def test_compare_counts_common_and_different_moves() -> None:
    snapshot = cluster(partitions=60)
    all_of_it = propose(snapshot, None, PlanRequest(balance=True))
    drained = propose(snapshot, None, PlanRequest(drain=frozenset({0})))
    same = compare(all_of_it, all_of_it)
    assert same.same == len(all_of_it.moves)
    assert not same.different
    assert same.only == ((), ())
    other = compare(all_of_it, drained)
    assert other.same + len(other.different) + len(other.only[0]) == len(all_of_it.moves)
    assert other.same_start


def test_load_model_survives_its_file() -> None:
    load = loads(cluster())
    back = load_from(dumps(load))
    assert back.partitions == load.partitions
    for name, resource in load.resources.items():
        assert np.array_equal(back.resources[name].leading, resource.leading)
        assert np.array_equal(back.resources[name].following, resource.following)
    assert dumps(back) == dumps(load)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda document: document["partitions"][0].pop("cpu"), "has no cpu of t0-0"),
        (lambda document: document["partitions"].append(document["partitions"][0]), "t0-0 twice"),
        (lambda document: document["partitions"][0].update(cpu=[1]), "damaged"),
        (lambda document: document["partitions"][0].update(cpu="much"), "damaged"),
        (lambda document: document.pop("made_ms"), "lacks 'made_ms'"),
        (lambda document: document.update(restow_load=9), "not a load model"),
    ],
)
def test_damaged_load_model_is_refused(change: object, says: str) -> None:
    document = json.loads(dumps(loads(cluster())))
    change(document)  # type: ignore[operator]
    with pytest.raises(InvalidDocument, match=says):
        load_from(json.dumps(document))
