"""Plan files: what they keep, what their digest covers, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from restow.errors import InvalidDocument
from restow.model import Left, Limits, Move, Plan, Promise, Snapshot, Step, TopicPartition
from restow.plan.files import text
from restow.plan.pin import Target, plan_from_targets
from tests.unit.plan.clusters import GB, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT_1 = """{"restow_plan": 1,
"cluster_id": "here",
"created_ms": 7,
"title": "",
"starting_hash": "cefff924fe82c961a0b6d0d991fed70b1127d307fabf24d0f32ac536dd97695c",
"limits": {"extra_copies": 1, "moves_in": 20, "moves_out": 10, "fill": 0.9},
"moves": [
{"topic": "t", "partition": 0, "before": [1, 2], "after": [4, 2], "size_bytes": 5,
 "dirs_before": {"1": "/d"}}],
"waves": [[
{"topic": "t", "partition": 0, "before": [1, 2], "after": [4, 2]}]]}
"""
"""As the previous version wrote it."""


def with_ids(here: Snapshot) -> Snapshot:
    return replace(here, topics=tuple(replace(each, id=f"id-of-{each.name}") for each in here.topics))


def a_plan() -> Plan:
    here = with_ids(snapshot({"t": [(1, 2, 3), (2, 3, 4)], "u": [(1, 2)]}))
    targets = [
        Target(partition=TopicPartition("t", 0), replicas=(4, 5, 0), reason="why not"),
        Target(partition=TopicPartition("t", 1), replicas=(2, 3)),
    ]
    made = plan_from_targets(here, targets, created_ms=7, title="drain 2")
    return replace(
        made,
        bound_bytes=3 * GB,
        bound_by="a count",
        promises=(
            Promise(kind="drained", brokers=(2,)),
            Promise(kind="f", topics=("t",), replication_factor=3),
        ),
        known_partitions={"t": 1, "u": 1},
        leaves=(Left(partition=TopicPartition("u", 0), why="its only replica is on a dead broker"),),
    )


def test_plan_keeps_topic_ids_and_sizes_of_the_snapshot() -> None:
    here = with_ids(snapshot({"t": [(1, 2)], "u": [(1, 2)]}))
    topic = here.topic["t"]
    small = topic.partitions[0].copies[1]._replace(size_bytes=7)
    copies = (topic.partitions[0].copies[0], small)
    here = replace(
        here,
        topics=(replace(topic, partitions=(topic.partitions[0]._replace(copies=copies),)), here.topic["u"]),
    )
    plan = plan_from_targets(here, [Target(partition=TopicPartition("t", 0), replicas=(1, 3))], created_ms=7)
    assert plan.topic_ids == {"t": "id-of-t"}
    assert plan.moves[0].sizes == {1: GB, 2: 7}
    assert plan.moves[0].size_bytes == GB


def test_promise_of_a_replication_factor_has_the_key_of_older_files() -> None:
    head = json.loads(text.dumps(a_plan()))
    assert head["promises"][1] == {"kind": "f", "topics": ["t"], "factor": 3}


def test_plan_survives_its_file_and_a_journal() -> None:
    plan = a_plan()
    assert text.loads(text.dumps(plan)) == plan
    assert text.plan_from(json.loads(json.dumps(text.document_of(plan))), "a journal") == plan


def test_plan_of_format_1_is_read() -> None:
    plan = text.loads(FORMAT_1)
    name = TopicPartition("t", 0)
    move = Move(partition=name, before=(1, 2), after=(4, 2), size_bytes=5, dirs_before={1: "/d"})
    step = Step(partition=name, before=(1, 2), after=(4, 2), size_bytes=5)
    assert plan == Plan(cluster_id="here", created_ms=7, moves=(move,), waves=((step,),))
    assert text.loads(text.dumps(plan)) == plan


def test_plan_of_a_journal_of_format_1_is_read_in_its_order() -> None:
    moves = [
        {
            "partition": ["t", number],
            "before": [1],
            "after": [2],
            "size_bytes": 5,
            "log_dirs": [],
            "dirs_before": {"1": "/d"},
        }
        for number in (0, 1)
    ]
    document: dict[str, Any] = {
        "cluster_id": "here",
        "created_ms": 7,
        "title": "x",
        "limits": {"extra_copies": 1, "moves_in": 20, "moves_out": 10, "fill": 0.9},
        "moves": moves,
        "order": [["t", 1], ["t", 0]],
    }
    plan = text.plan_from(document, "a journal")
    assert [str(move.partition) for move in plan.moves_in_order] == ["t-1", "t-0"]
    assert plan.limits == Limits()


_CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda it: it.update(cluster_id="there"),
    lambda it: it.update(created_ms=8),
    lambda it: it.update(title="drain 3"),
    lambda it: it["limits"].update(moves_in=21),
    lambda it: it["limits"].update(fill=0.95),
    lambda it: it.update(bound_bytes=1),
    lambda it: it["topic_ids"].update(t="another"),
    lambda it: it["topic_ids"].clear(),
    lambda it: it["promises"][0].update(brokers=[3]),
    lambda it: it["promises"].pop(),
    lambda it: it["known_partitions"].update(t=2),
    lambda it: it["leaves"].pop(),
    lambda it: it["leaves"][0].update(why=""),
    lambda it: it["moves"][0].update(size_bytes=1),
    lambda it: it["moves"][0].update(reason="because"),
    lambda it: it["moves"][0]["sizes"].update({"1": 1}),
    lambda it: it["moves"][0]["dirs_before"].update({"1": "/elsewhere"}),
    lambda it: it["moves"][0].update(log_dirs=["/a", "/b", "/c"]),
    lambda it: (it["moves"][1].update(after=[3, 2]), it["waves"][0][-1].update(after=[3, 2])),
    lambda it: it["waves"].append([it["waves"][0].pop()]),
    lambda it: it.update(digest="sha256:" + "0" * 64),
    lambda it: it.pop("digest"),
]


@pytest.mark.parametrize("change", _CHANGES)
def test_plan_is_refused_when_anything_in_it_was_changed(change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(text.dumps(a_plan()))
    change(document)
    with pytest.raises(InvalidDocument, match=r"plan\.json was changed after it was made: it says"):
        text.loads(json.dumps(document), "plan.json")


def test_plan_is_read_when_its_file_was_only_reformatted() -> None:
    plan = a_plan()
    document = json.loads(text.dumps(plan))
    assert text.loads(json.dumps(document, sort_keys=True, indent=3)) == plan


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("{", "[", 1), "not JSON"),
        (('"restow_plan": 2', '"restow_plan": 3', 1), "format 3"),
        (('"restow_plan": 2', '"restow_plan": true', 1), "format True"),
        (('"restow_plan": 2', '"other": 2', 1), "not a plan of Restow"),
        (('"before": [1, 2, 3]', '"before": [1, 2, 3.5]', 1), r"3.5\] is not a list of brokers"),
        (('"before": [1, 2, 3]', '"before": [1, 2, 2]', 1), "names a broker twice"),
        (('"size_bytes"', '"size"', 1), "it lacks 'size_bytes'"),
        (('"fill": 0.9', '"fill": 9', 1), "cannot be filled"),
        (('"fill": 0.9', '"fill": NaN', 1), "NaN is not a number"),
        (('"fill": 0.9', '"fill": 1e999', 1), "inf is not a number"),
        (('"fill": 0.9', '"fill": "0.9"', 1), "'0.9' is not a number"),
        (('"moves_in": 20', '"moves_in": Infinity', 1), "Infinity is not a number"),
        (('"moves_in": 20', '"moves_in": 0', 1), "nothing can move"),
        (('"moves_in": 20', '"moves_in": true', 1), "True is not a whole number"),
        (('"moves_in": 20', f'"moves_in": {10**30}', 1), "is not between"),
        (('"title": "drain 2"', '"title": "\\ud800"', 1), "half a character"),
    ],
)
def test_damaged_plan_is_refused_with_the_reason(change: tuple[str, str, int], complaint: str) -> None:
    whole = text.dumps(a_plan())
    damaged = whole.replace(*change)
    assert damaged != whole
    with pytest.raises(InvalidDocument, match=complaint):
        text.loads(damaged, "plan.json")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('"before": [1, 2]', '"before": [2, 1]', 1), "hash"),
        (('"after": [4, 2]', '"after": [4, 3]', 1), "do not lead to"),
        (('0, "before": [1, 2], "after": [4, 2]}', '0, "before": [1], "after": [4, 2]}', 1), "starts from"),
    ],
)
def test_plan_of_format_1_is_refused_when_its_steps_do_not_fit(
    change: tuple[str, str, int], complaint: str
) -> None:
    damaged = FORMAT_1.replace(*change)
    assert damaged != FORMAT_1
    with pytest.raises(InvalidDocument, match=complaint):
        text.loads(damaged, "plan.json")
