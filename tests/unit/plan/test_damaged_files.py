"""Damaged and hostile files: whatever is wrong with them, they are refused and never crash.

Each case takes a valid document and breaks it in one to three places: a member is deleted, copied or renamed,
or a value is replaced by one of another type or far out of range. A document that can still be read is
planned with, because a value that passes the reader may hang or crash later code.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from restow.errors import InvalidInput
from restow.model import Left, Promise, Snapshot, TopicPartition, load_text
from restow.model.load import LoadModel, Resource
from restow.plan.drift import differences, rebase
from restow.plan.explain.explain import explain
from restow.plan.explain.view import seconds_at, view_of
from restow.plan.files import text
from restow.plan.files.kafka_json import check_reassignment, parse_reassignment, parse_topics, there_and_back
from restow.plan.pin import Target, plan_from_targets
from restow.plan.propose import propose
from restow.plan.request.request import PlanRequest
from restow.snapshot import text as snapshot_text
from restow.snapshot.differences import differences as snapshot_differences
from restow.verify import verify
from restow.verify.broker_check import broker_check
from tests.often import of_many
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = of_many(150, often=40)
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", "x", "1", "any", "\x1b[2J", "\ud800", "a/../b", [], {}, [[]], [1, 1], [1, 2], ["x"],
    [None], {"x": 1}, {"1": "/d"}, {"1": None},
]  # fmt: skip


def sound() -> Snapshot:
    here = snapshot(
        {"t": [(1, 2), (2, 3), (3, 1)], "u": [(1, 2), (2, 1)]}, dirs=("/d", "/e"), brokers=range(1, 6)
    )
    moving = here.topics[1].partitions[0]._replace(replicas=(1, 2, 3), adding=(3,), removing=(2,))
    topics = (
        replace(here.topics[0], id="A", configs={"a": "b"}),
        replace(here.topics[1], partitions=(moving, *here.topics[1].partitions[1:])),
    )
    brokers = tuple(replace(each, rack=f"r{each.id % 2}") for each in here.brokers)
    return replace(here, topics=topics, brokers=brokers, default_configs={"c": "d"}, unanswered=(5,))


def sound_plan() -> Any:
    targets = [
        Target(partition=TopicPartition("t", 0), replicas=(4, 5), reason="because"),
        Target(partition=TopicPartition("t", 1), replicas=(2, 3), log_dirs=("any", "/e")),
    ]
    made = plan_from_targets(sound(), targets, created_ms=7, title="drain 1")
    return replace(
        made,
        bound_bytes=5,
        bound_by="x",
        promises=(
            Promise(kind="drained", brokers=(1,)),
            Promise(kind="x", topics=("t",), replication_factor=2),
        ),
        leaves=(Left(partition=TopicPartition("u", 0), why="it moves"),),
    )


def sound_load() -> LoadModel:
    names = sound().names
    column = np.arange(1.0, 1.0 + len(names))
    resource = Resource(leading=column, following=column / 2, capacity={1: 5.0})
    return LoadModel(cluster_id="here", made_ms=1, partitions=names, resources={"bytes_in": resource})


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every list and object in a document, with the name of each of its members."""
    found: list[tuple[Any, Any]] = []
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, each in members:
        found.append((value, key))
        found += places(each)
    return found


def damage(document: Any, chance: random.Random) -> None:
    """Break a document in one place."""
    where = places(document) or [([None], 0)]
    holder, key = chance.choice(where)
    kind = chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), holder[key])
    elif kind == 2 and isinstance(holder, dict):
        holder[chance.choice(["", "x", "topic", "1", key.upper()])] = holder.pop(key)
    elif kind == 3:
        other, name = chance.choice(where)
        holder[key] = deepcopy(other[name])
    else:
        holder[key] = deepcopy(chance.choice(VALUES))


def in_lines(laid_out: str) -> str:
    """Format a document like our own files, which are read in pieces."""
    for name, first in (("topics", "name"), ("partitions", "topic")):
        opening = f'"{name}": [{{"{first}"'
        if opening in laid_out:
            head, _, tail = laid_out.partition(opening)
            tail = tail.replace(f'}}, {{"{first}": ', f'}},\n{{"{first}": ')
            return f'{head}"{name}": [\n{{"{first}"{tail}\n'
    return laid_out


def damaged(whole: str, seed: int) -> str:
    chance = random.Random(seed)
    document = json.loads(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        damage(document, chance)
    laid_out = json.dumps(document)
    if chance.random() < 0.5:
        laid_out = in_lines(laid_out)
    if chance.random() < 0.1:
        cut = chance.randrange(len(laid_out))
        laid_out = laid_out[:cut] + chance.choice(["", "}", "]", "\x00", "[" * 3000]) + laid_out[cut:]
    return laid_out


def use_snapshot(found: str) -> None:
    here = snapshot_text.loads(found)
    assert snapshot_text.loads(snapshot_text.dumps(here)) == here
    snapshot_differences(sound(), here)
    broker_check(here, 1)
    for request in (PlanRequest(drain=frozenset({1})), PlanRequest(balance=True, fix_racks=True, disks=True)):
        try:
            plan = propose(here, None, request, created_ms=here.taken_ms)
            explain(here, None, plan, request)
        except InvalidInput:
            continue
        assert text.loads(text.dumps(plan)) == plan


def use_load(found: str) -> None:
    load = load_text.loads(found)
    propose(sound(), load, PlanRequest(balance=True), created_ms=1)


def use_plan(found: str) -> None:
    plan = text.loads(found)
    use_any_plan(plan)


def use_any_plan(plan: Any) -> None:
    here = sound()
    view = view_of(plan)
    seconds_at(view, 1e6)
    there_and_back(plan)
    differences(plan, here)
    verify(plan, here)
    rebase(plan, here, created_ms=9)


def use_plan_whatever_its_digest(found: str) -> None:
    """Use a plan with a recomputed digest, as an attacker could make it."""
    try:
        plan = text._plan(json.loads(found))
    except text.fields.DAMAGE as error:
        raise InvalidInput(str(error)) from None
    use_any_plan(text.loads(text.dumps(plan)))


def use_reassignment(found: str) -> None:
    targets = parse_reassignment(found)
    check_reassignment(targets)
    plan_from_targets(sound(), targets, created_ms=1)


REASSIGNMENT = json.dumps(
    {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 4], "log_dirs": ["any", "/e"]}],
    }
)
KINDS: dict[str, tuple[Callable[[], str], Callable[[str], object]]] = {
    "snapshot": (lambda: snapshot_text.dumps(sound()), use_snapshot),
    "load model": (lambda: load_text.dumps(sound_load()), use_load),
    "plan": (lambda: text.dumps(sound_plan()), use_plan),
    "plan with another digest": (lambda: text.dumps(sound_plan()), use_plan_whatever_its_digest),
    "reassignment": (lambda: REASSIGNMENT, use_reassignment),
    "topics": (lambda: '{"version": 1, "topics": [{"topic": "t"}]}', parse_topics),
}


@pytest.mark.parametrize("kind", KINDS)
def test_valid_file_is_read_and_used(kind: str) -> None:
    whole, use = KINDS[kind]
    use(whole())


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_file_is_refused_or_used_and_never_crashes(kind: str) -> None:
    whole, use = KINDS[kind]
    laid_out = whole()
    refused = 0
    for seed in range(CASES):
        found = damaged(laid_out, seed)
        try:
            use(found)
        except InvalidInput:
            refused += 1
        except BaseException as error:
            error.add_note(f"seed {seed}: {found[:2000]}")
            raise
    assert refused > CASES / 10
