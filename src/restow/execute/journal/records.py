"""Plans and steps as the JSON of a journal, and back."""

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


def step_of(document: Any) -> Step:
    """Read a step; raise ValueError, KeyError or TypeError if it is none."""
    log_dirs = document["log_dirs"]
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        raise ValueError(f"these are no log dirs: {log_dirs!r}")
    return Step(
        partition=partition_of(document["partition"]),
        before=_replicas(document["before"]),
        after=_replicas(document["after"]),
        size_bytes=_number(document["size_bytes"]),
        log_dirs=tuple(log_dirs),
    )


def partition_of(pair: Any) -> TopicPartition:
    """Read a partition; raise ValueError or TypeError if it is none."""
    topic, number = pair
    if not isinstance(topic, str):
        raise TypeError(f"this is no topic: {topic!r}")
    return TopicPartition(topic, _number(number))


def setting_of(triple: Any) -> Setting:
    """Read a setting; raise ValueError or TypeError if it is none that a run may change."""
    of, name, key = triple
    keys: Mapping[Any, Sequence[str]] = {"broker": RATES, "topic": REPLICAS}
    if not isinstance(name, str) or key not in keys.get(of, ()) or (of == "broker" and not name.isdecimal()):
        raise ValueError(f"this is no setting of a throttle: {triple!r}")
    return Setting(of, name, key)


def text_or_none(value: Any) -> str | None:
    """Read what a setting was set to; raise ValueError if it is neither text nor missing."""
    if value is not None and not isinstance(value, str):
        raise ValueError(f"this is no value of a setting: {value!r}")
    return value


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"this is no text: {value!r}")
    return value


def texts_by_text(value: Any) -> dict[str, str]:
    return {text_of(name): text_of(text) for name, text in value.items()}


def turn_of(facts: Mapping[str, Any]) -> int:
    """Read the turn of a run; journals of earlier versions have none."""
    turn = _number(facts.get("turn", 0))
    if turn > LAST_TURN:
        raise ValueError(f"nothing was ever done so often: {turn}")
    return turn


def _replicas(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or len(set(map(_number, value))) < len(value):
        raise ValueError(f"these are no replicas: {value!r}")
    return tuple(value)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"this is no number from zero on: {value!r}")
    return value


def _as_a_file(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a journal of an earlier version says of its plan, as the file of format 1 would say it."""
    moves = {partition_of(each["partition"]): each for each in document["moves"]}
    order = dict.fromkeys((*map(partition_of, document["order"]), *moves))
    named = [{**moves[name], "topic": name.topic, "partition": name.partition} for name in order]
    return {**document, "restow_plan": 1, "moves": named, "waves": []}
