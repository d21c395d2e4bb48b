"""Explanations of plans, comparisons of two, and load model files."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from restow.errors import InvalidDocument
from restow.model import Partition, TopicPartition
from restow.model.load_text import dumps
from restow.model.load_text import loads as load_from
from restow.plan.explain.amounts import by_log_dir
from restow.plan.explain.explain import explain
from restow.plan.explain.view import view_of
from restow.plan.files import text
from restow.plan.judge.compare import compare
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest
from tests.often import of_many
from tests.unit.plan import clusters

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


def test_explanation_says_that_only_new_brokers_are_given_replicas() -> None:
    """Replicas could go to other racks, so racks are not the reason."""
    snapshot = clusters.snapshot({"t": [(0, 1)] * 8 + [(1, 0)] * 8, "u": [(0, 1, 2)] * 3}, brokers=range(6))
    request = PlanRequest(add=frozenset({5}), bands={"replicas": 0.001})
    told = explain(snapshot, None, propose(snapshot, None, request), request)
    reasons = {each.because for each in told.unmet if each.goal == "replicas"}
    assert reasons
    assert all(why.startswith("only the brokers that are being added") for why in reasons), reasons


def test_explanation_names_racks_only_if_they_hold_a_broker_above_its_band() -> None:
    """Broker 0 is alone in its rack. What has a replica in every rack stays on it; the rest need not."""
    bound = clusters.snapshot({"t": [(0, 1, 3), (0, 2, 4)] * 6}, brokers=range(5))
    free = clusters.snapshot({"t": [(0,)] * 24, "u": [(0, 1, 3)]}, brokers=range(5))
    for there, is_bound in ((bound, True), (free, False)):
        racked = (replace(each, rack=rack) for each, rack in zip(there.brokers, "abbcc", strict=True))
        snapshot = replace(there, brokers=tuple(racked))
        request = PlanRequest(balance=True, bands={"replicas": 0.001})
        plan = propose(snapshot, None, request)
        told = explain(snapshot, None, plan, request)
        mine = [each for each in told.unmet if (each.goal, each.broker) == ("replicas", 0)]
        assert bool(mine) == is_bound
        assert all("cannot go to another" in each.because for each in mine)
        assert all("replicas of broker 0 stay at 1.667" in each.text for each in mine), mine


def test_explanation_names_full_log_dirs_as_the_constraint() -> None:
    snapshot = cluster(partitions=90)
    request = PlanRequest(balance=True, fill=0.0001)
    plan = propose(snapshot, None, request)
    told = {each.because for each in explain(snapshot, None, plan, request).unmet if each.goal == "replicas"}
    assert told
    assert all("with room below" in why for why in told), told


def test_explanation_names_constraints_of_a_plan_that_adds_replicas() -> None:
    snapshot = cluster(partitions=7, replication_factor=1, disk_bytes=10**11)
    request = PlanRequest(replication_factors={"*": 2}, balance=True, bands={"disk": 0.001})
    told = explain(snapshot, None, propose(snapshot, None, request), request)
    assert told.unmet
    assert all(each.because for each in told.unmet)


@pytest.mark.parametrize(
    "request_",
    [
        PlanRequest(drain=frozenset({0})),
        PlanRequest(replace={0: 5}),
        PlanRequest(demote=frozenset({0})),
        PlanRequest(replication_factors={"*": 1}),
        PlanRequest(replication_factors={"*": 3}),
    ],
    ids=lambda request: str(
        request.drain or request.replace or request.demote or request.replication_factors
    ),
)
def test_every_explanation_tells_the_same_of_the_cluster_before(request_: PlanRequest) -> None:
    snapshot = clusters.snapshot({"t": [(0, 1), (0, 2), (0, 3), (1, 4), (0, 4)]})
    balance = PlanRequest(balance=True)
    told = explain(snapshot, None, propose(snapshot, None, balance), balance)
    also_told = explain(snapshot, None, propose(snapshot, None, request_), request_)
    assert [each.before for each in also_told.goals] == [each.before for each in told.goals]
    assert told.goals[0].before == (2.4, 0.0), "4 of 10 replicas on one of 6 brokers, and none on another"


@pytest.mark.parametrize("request_", [PlanRequest(replace={0: 5}), PlanRequest(replication_factors={"*": 3})])
def test_explanation_names_no_broker_that_was_out_of_band_for_a_goal_not_asked_for(
    request_: PlanRequest,
) -> None:
    snapshot = clusters.snapshot({"t": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 1)]})
    told = explain(snapshot, None, propose(snapshot, None, request_), request_)
    assert any(goal.out_of_band for goal in told.goals)
    assert not told.unmet


def test_explanation_says_whom_the_plan_itself_takes_out_of_band() -> None:
    request = PlanRequest(fix_racks=True)
    found = []
    for seed in range(6):
        snapshot = cluster(partitions=12, replication_factor=2, seed=seed)
        found += explain(snapshot, None, propose(snapshot, None, request), request).unmet
    assert found
    for each in found:
        told = (
            f"the plan takes {each.goal} of broker {each.broker} from {each.before:.3f} to {each.ratio:.3f} ×"
        )
        assert each.text.startswith(told), each
        assert "balance was not asked for" in each.text


def test_explanation_says_stays_only_of_brokers_that_keep_their_share() -> None:
    request = PlanRequest(balance=True, bands={"disk": 0.001})
    said = set()
    for seed in range(4):
        snapshot = cluster(partitions=9, replication_factor=1, seed=seed)
        for each in explain(snapshot, None, propose(snapshot, None, request), request).unmet:
            stays = "stays at" in each.text
            said.add(stays)
            assert stays == (round(each.before or 0, 2) == round(each.ratio, 2)), each
    assert said == {True, False}


def test_reasons_of_moves_name_a_goal_only_if_the_move_helps_it() -> None:
    kinds = set()
    for seed in range(of_many(12, often=4)):
        snapshot = cluster(partitions=60, seed=seed)
        for move in propose(snapshot, None, PlanRequest(balance=True)).moves:
            found = re.match(r"(\w+): broker (\d+) (?:has|leads) too (much|little)", move.reason)
            if found is None:
                assert move.reason.startswith(("balance: ", "leaders: broker", "preferred leader: ")), move
                continue
            goal, broker, much = found[1], int(found[2]), found[3] == "much"
            kinds.add((goal, much))
            where, elsewhere = (move.before, move.after) if much else (move.after, move.before)
            if goal == "leaders":
                assert where[0] == broker != elsewhere[0], move
            else:
                assert broker in set(where) - set(elsewhere), move
    assert kinds >= {("disk", True), ("leaders", True), ("replicas", True), ("leaders", False)}


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


def test_explanation_says_which_moves_have_an_unknown_size() -> None:
    """Broker 0 does not answer: nobody else knows the size of what it alone has."""
    snapshot = clusters.snapshot({"alone": [(0,)], "other": [(0, 1)]}, brokers=range(3))
    alone = replace(snapshot.topic["alone"], partitions=(Partition(0, (0,), (0,), 0),))
    other = snapshot.topic["other"]
    request = PlanRequest(drain=frozenset({0}))
    for unanswered, expected in (((0,), [TopicPartition("alone", 0)]), ((), [])):
        seen = replace(snapshot, topics=(alone, other), unanswered=unanswered)
        plan = propose(seen, None, request)
        told = explain(seen, None, plan, request)
        unsized = [move.partition for move in text.loads(text.dumps(plan)).moves if move.told_bytes is None]
        assert unsized == [TopicPartition("alone", 0)]
        assert view_of(plan).unsized == 1
        notes = [note for note in told.notes if "unknown size" in note.text]
        assert [name for note in notes for name in note.partitions] == expected
        assert all(note.warning and "from brokers 0" in note.text for note in notes)
