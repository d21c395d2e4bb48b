"""Plans and steps as the JSON of a journal, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from restow.model import Limits, Move, Plan, Step, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping


def plan_document(plan: Plan) -> dict[str, Any]:
    """What a run has to remember of its plan; waves can be found again from the rest."""
    return {
        "cluster_id": plan.cluster_id,
        "created_ms": plan.created_ms,
        "title": plan.title,
        "limits": asdict(plan.limits),
        "moves": [_move_document(move) for move in plan.moves],
        "order": [list(step.partition) for wave in plan.waves for step in wave],
    }


def plan_of(document: Mapping[str, Any]) -> Plan:
    """The plan, its moves in the order in which they were to begin, without waves."""
    moves = {move.partition: move for move in map(_move, document["moves"])}
    order = dict.fromkeys((*(partition_of(each) for each in document["order"]), *moves))
    return Plan(
        cluster_id=document["cluster_id"],
        created_ms=document["created_ms"],
        title=document["title"],
        limits=Limits(**document["limits"]),
        moves=tuple(moves[partition] for partition in order),
    )


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


def _move_document(move: Move) -> dict[str, Any]:
    return {
        "partition": list(move.partition),
        "before": list(move.before),
        "after": list(move.after),
        "size_bytes": move.size_bytes,
        "log_dirs": list(move.log_dirs),
        "dirs_before": {str(broker): path for broker, path in move.dirs_before.items()},
    }


def _move(document: Mapping[str, Any]) -> Move:
    return Move(
        partition=partition_of(document["partition"]),
        before=tuple(document["before"]),
        after=tuple(document["after"]),
        size_bytes=document["size_bytes"],
        log_dirs=tuple(document["log_dirs"]),
        dirs_before={int(broker): path for broker, path in document["dirs_before"].items()},
    )
