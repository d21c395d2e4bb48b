"""Plans and steps as the JSON of a journal, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.model import Step, TopicPartition
from restow.plan.text import document_of, plan_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import Plan


def plan_document(plan: Plan) -> dict[str, Any]:
    """What a run keeps of its plan: all that its file says."""
    return document_of(plan)


def plan_of(document: Mapping[str, Any], source: str) -> Plan:
    """The plan of a journal. `source` is how complaints call it."""
    return plan_from(document if "restow_plan" in document else _as_a_file(document), source)


def step_document(step: Step) -> dict[str, Any]:
    return {
        "partition": list(step.partition),
        "before": list(step.before),
        "after": list(step.after),
        "size_bytes": step.size_bytes,
        "log_dirs": list(step.log_dirs),
    }


def step_of(document: Mapping[str, Any]) -> Step:
    return Step(
        partition=partition_of(document["partition"]),
        before=tuple(document["before"]),
        after=tuple(document["after"]),
        size_bytes=document["size_bytes"],
        log_dirs=tuple(document["log_dirs"]),
    )


def partition_of(pair: Any) -> TopicPartition:
    topic, number = pair
    return TopicPartition(topic, number)


def _as_a_file(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a journal of an earlier version says of its plan, as the file of format 1 would say it."""
    moves = {partition_of(each["partition"]): each for each in document["moves"]}
    order = dict.fromkeys((*map(partition_of, document["order"]), *moves))
    named = [{**moves[name], "topic": name.topic, "partition": name.partition} for name in order]
    return {**document, "restow_plan": 1, "moves": named, "waves": []}
