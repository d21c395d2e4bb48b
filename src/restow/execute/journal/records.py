"""Convert plans and steps to the JSON of a journal, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.execute.throttle.throttles import RATES, REPLICAS, Setting
from restow.model import Step, TopicPartition
from restow.plan.files.text import document_of, plan_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.model import Plan

_MOST = 2**63
LAST_TURN = 10**12


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the whole plan as JSON for the journal."""
    return document_of(plan)


def plan_of(document: Mapping[str, Any], source: str) -> Plan:
    """Return the plan in a journal; `source` names it in error messages."""
    return plan_from(document if "restow_plan" in document else _as_a_file(document), source)


def step_document(step: Step) -> dict[str, Any]:
    return {
        "partition": list(step.partition),
        "before": list(step.before),
        "after": list(step.after),
        "size_bytes": step.size_bytes,
        "log_dirs": list(step.log_dirs),
    }


def step_of(document: Any) -> Step:
    """Read a step; raise ValueError, KeyError or TypeError if it is not valid."""
    log_dirs = document["log_dirs"]
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        raise ValueError(f"not a list of log dirs: {log_dirs!r}")
    return Step(
        partition=partition_of(document["partition"]),
        before=_replicas(document["before"]),
        after=_replicas(document["after"]),
        size_bytes=_number(document["size_bytes"]),
        log_dirs=tuple(log_dirs),
    )


def partition_of(pair: Any) -> TopicPartition:
    """Read a partition; raise ValueError or TypeError if it is not valid."""
    topic, number = pair
    if not isinstance(topic, str):
        raise TypeError(f"not a topic: {topic!r}")
    return TopicPartition(topic, _number(number))


def setting_of(triple: Any) -> Setting:
    """Read a setting; raise ValueError or TypeError if it is not a throttle config."""
    of, name, key = triple
    keys: Mapping[Any, Sequence[str]] = {"broker": RATES, "topic": REPLICAS}
    if not isinstance(name, str) or key not in keys.get(of, ()) or (of == "broker" and not name.isdecimal()):
        raise ValueError(f"not a throttle config: {triple!r}")
    return Setting(of, name, key)


def text_or_none(value: Any) -> str | None:
    """Read the value of a setting; raise ValueError if it is neither a string nor null."""
    if value is not None and not isinstance(value, str):
        raise ValueError(f"not a value of a config: {value!r}")
    return value


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a string: {value!r}")
    return value


def texts_by_text(value: Any) -> dict[str, str]:
    return {text_of(name): text_of(text) for name, text in value.items()}


def turn_of(facts: Mapping[str, Any]) -> int:
    """Read the turn of a run; journals of earlier versions have none."""
    turn = _number(facts.get("turn", 0))
    if turn > LAST_TURN:
        raise ValueError(f"the turn {turn} is too large")
    return turn


def _replicas(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or len(set(map(_number, value))) < len(value):
        raise ValueError(f"not a list of replicas: {value!r}")
    return tuple(value)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"not a number from zero on: {value!r}")
    return value


def _as_a_file(document: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the plan in a journal of an earlier version to plan format 1."""
    moves = {partition_of(each["partition"]): each for each in document["moves"]}
    order = dict.fromkeys((*map(partition_of, document["order"]), *moves))
    named = [{**moves[name], "topic": name.topic, "partition": name.partition} for name in order]
    return {**document, "restow_plan": 1, "moves": named, "waves": []}
