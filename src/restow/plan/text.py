"""Plans as files: JSON with one move and one step per line, so that two plans can be compared with `diff`.

    {"restow_plan": 1, "cluster_id": "…", "created_ms": 1700000000000, "title": "…",
    "starting_hash": "…", "limits": {…},
    "moves": [
    {"topic": "orders", "partition": 0, "before": [1, 2], "after": [1, 3], "size_bytes": 1048576},
    …],
    "waves": [[
    {"topic": "orders", "partition": 0, "before": [1, 2], "after": [1, 3]},
    …], …]}

A plan is what somebody approved. So reading one checks that it is whole: the hash of where it starts, and
that the steps of every partition lead from there to where it is to be.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidDocument
from restow.model import ANY_DIR, Limits, Move, Plan, Step, TopicPartition
from restow.plan.pin import check_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.model import BrokerId

VERSION = 1


def dumps(plan: Plan) -> str:
    """The file's text."""
    head: dict[str, object] = {
        "restow_plan": VERSION,
        "cluster_id": plan.cluster_id,
        "created_ms": plan.created_ms,
        "title": plan.title,
        "starting_hash": plan.starting_hash,
        "limits": asdict(plan.limits),
    }
    if plan.bound_bytes is not None:
        head |= {"bound_bytes": plan.bound_bytes, "bound_by": plan.bound_by}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    quoted: Callable[[str], str] = cache(json.dumps)
    changes = [(move, _change(move, quoted)) for move in plan.moves]
    moves = _lines([_move_text(move, text, quoted) for move, text in changes])
    whole = {move.partition: (move.before, move.after, text) for move, text in changes}
    steps = ([_step_text(step, whole, quoted) for step in wave] for wave in plan.waves)
    waves = ",\n".join(f"[{_lines(wave)}]" for wave in steps)
    return f'{{{lines},\n"moves": [{moves}],\n"waves": [{waves}]}}\n'


def loads(text: str, source: str = "the plan") -> Plan:
    """A plan from a file's text. `source` is how complaints call it."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidDocument(f"{source} is not JSON: {error}") from None
    except RecursionError:
        raise InvalidDocument(f"{source} is nested too deeply to be a plan") from None
    if not isinstance(document, dict) or "restow_plan" not in document:
        raise InvalidDocument(
            f"{source} is not a plan of Restow: make one with `restow plan`, "
            "or with `restow plan from-json` from Kafka's reassignment JSON"
        )
    if document["restow_plan"] != VERSION:
        raise InvalidDocument(
            f"{source} is a plan of format {document['restow_plan']!r}; this Restow reads format {VERSION}"
        )
    try:
        plan = _plan(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidDocument(f"{source} is damaged: {what}. Make the plan again") from None
    if plan.starting_hash != document.get("starting_hash"):
        raise InvalidDocument(
            f"{source} is damaged: its moves do not start from what its hash says. Make the plan again"
        )
    _check_steps(plan, source)
    return plan


def _lines(records: Iterable[str]) -> str:
    found = ",\n".join(records)
    return f"\n{found}" if found else ""


def _move_text(move: Move, change: str, quoted: Callable[[str], str]) -> str:
    """Put together by hand, for an encoder takes seconds for a million of them; `quoted` makes texts JSON."""
    parts = [f'{change}, "size_bytes": {move.size_bytes}']
    if move.log_dirs:
        parts.append(f'"log_dirs": [{", ".join(map(quoted, move.log_dirs))}]')
    if move.dirs_before:
        dirs = [f'"{broker}": {quoted(path)}' for broker, path in sorted(move.dirs_before.items())]
        parts.append(f'"dirs_before": {{{", ".join(dirs)}}}')
    if move.reason:
        parts.append(f'"reason": {quoted(move.reason)}')
    return f"{{{', '.join(parts)}}}"


def _step_text(
    step: Step,
    whole: Mapping[TopicPartition, tuple[tuple[BrokerId, ...], tuple[BrokerId, ...], str]],
    quoted: Callable[[str], str],
) -> str:
    """Mostly a step is all of its move, whose text is there already."""
    before, after, text = whole.get(step.partition, ((), (), ""))
    same = step.before == before and step.after == after
    return f"{{{text if same else _change(step, quoted)}}}"


def _change(change: Move | Step, quoted: Callable[[str], str]) -> str:
    topic, partition = change.partition
    before, after = [*change.before], [*change.after]
    return f'"topic": {quoted(topic)}, "partition": {partition}, "before": {before}, "after": {after}'


def _plan(document: Mapping[str, Any]) -> Plan:
    moves = tuple(_move(each) for each in document["moves"])
    of = {move.partition: move for move in moves}
    if len(of) < len(moves):
        raise ValueError("a partition has two moves")
    limits = Limits(**document["limits"])
    check_limits(limits)
    return Plan(
        cluster_id=_text(document["cluster_id"]),
        created_ms=_number(document["created_ms"]),
        moves=moves,
        waves=tuple(tuple(_step(each, of) for each in wave) for wave in document["waves"]),
        limits=limits,
        title=_text(document.get("title", "")),
        bound_bytes=document.get("bound_bytes"),
        bound_by=_text(document.get("bound_by", "")),
    )


def _move(fields: Mapping[str, Any]) -> Move:
    after, dirs = _brokers(fields["after"]), tuple(_text(each) for each in fields.get("log_dirs", ()))
    name = _partition(fields)
    if dirs and len(dirs) != len(after):
        raise ValueError(f"{name} has {len(after)} replicas but {len(dirs)} directories")
    return Move(
        partition=name,
        before=_brokers(fields["before"]),
        after=after,
        size_bytes=_number(fields["size_bytes"]),
        log_dirs=dirs,
        dirs_before={int(key): _text(path) for key, path in fields.get("dirs_before", {}).items()},
        reason=_text(fields.get("reason", "")),
    )


def _step(fields: Mapping[str, Any], moves: Mapping[TopicPartition, Move]) -> Step:
    name, after = _partition(fields), _brokers(fields["after"])
    move = moves.get(name)
    if move is None:
        raise ValueError(f"a step of {name}, which has no move")
    wanted = dict(zip(move.after, move.log_dirs, strict=False))
    return Step(
        partition=name,
        before=_brokers(fields["before"]),
        after=after,
        size_bytes=move.size_bytes,
        log_dirs=tuple(wanted.get(broker, ANY_DIR) for broker in after) if wanted else (),
    )


def _check_steps(plan: Plan, source: str) -> None:
    """Steps that lead somewhere else than their move are nothing that was approved."""
    now = {move.partition: move.before for move in plan.moves}
    stepped = set()
    for wave in plan.waves:
        for step in wave:
            if now[step.partition] != step.before:
                raise InvalidDocument(
                    f"{source} is damaged: a step of {step.partition} starts from {list(step.before)} "
                    f"when it has {list(now[step.partition])}. Make the plan again"
                )
            now[step.partition] = step.after
            stepped.add(step.partition)
    for move in plan.moves:
        if now[move.partition] != move.after or move.partition not in stepped:
            raise InvalidDocument(
                f"{source} is damaged: the steps of {move.partition} do not lead to {list(move.after)}. "
                "Make the plan again"
            )


def _partition(fields: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(_text(fields["topic"]), _number(fields["partition"]))


def _brokers(value: object) -> tuple[BrokerId, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{value!r} is no list of brokers")
    brokers = tuple(_number(each) for each in value)
    if len(set(brokers)) < len(brokers):
        raise ValueError(f"{value!r} names a broker twice")
    return brokers


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")  # noqa: TRY004
    return value
