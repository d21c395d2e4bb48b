"""Plan files: JSON with one move and one step per line, so that `diff` can compare two plans.

    {"restow_plan": 2, "digest": "sha256:…",
    "cluster_id": "…", "created_ms": 1700000000000, "title": "…", "limits": {…},
    "topic_ids": {"orders": "…"}, "promises": [{"kind": "drained", "brokers": [2]}], "known_partitions": {…},
    "leaves": [{"topic": "audit", "partition": 0, "why": "…"}],
    "moves": [
    {"topic": "orders", "partition": 0, "before": [1, 2], "after": [1, 3], "size_bytes": 1048576,
     "dirs_before": {"1": "/a", "2": "/b"}, "sizes": {"1": 1048576, "2": 1040000}},
    …],
    "waves": [[
    {"topic": "orders", "partition": 0, "before": [1, 2], "after": [1, 3]},
    …], …]}

The digest is the SHA-256 of this text without the digest itself. It is computed from the values read, as
`dumps` writes them: it covers every value that Restow uses, but neither white space nor the order of names.
Members with their default value are not written, so members that later versions add leave it unchanged.

A plan is what a person approved. So reading one checks that it is complete: the digest must match, and the
steps of every partition must lead from its present replicas to its target. Files of format 1 have no digest,
no topic ids, promises, leaves or sizes; they have a hash of the replicas that their moves start from.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidDocument
from restow.model import ANY_DIR, Left, Limits, Move, Plan, Promise, Step, TopicPartition, fields
from restow.plan.pin import check_limits
from restow.text_files import one_per_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.model import BrokerId

VERSION = 2
_OLDEST = 1
_KEPT = "_digest"


def dumps(plan: Plan) -> str:
    """Return the text of the plan's file."""
    body = _body(plan)
    return f'{{"restow_plan": {VERSION}, "digest": "{_digest(plan, body)}",\n{body}}}\n'


def digest_of(plan: Plan) -> str:
    """Return the digest of the plan's file: "sha256:" and 64 hexadecimal digits."""
    known: str | None = vars(plan).get(_KEPT)
    return known or _digest(plan, _body(plan))


def document_of(plan: Plan) -> dict[str, Any]:
    """Return the file's contents as a document, to embed in another file."""
    document: dict[str, Any] = json.loads(dumps(plan))
    return document


def loads(text: str, source: str = "the plan") -> Plan:
    """Parse the text of a plan's file; `source` names it in errors."""
    try:
        document = json.loads(text, parse_constant=fields.no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(f"{source} is not JSON: {error}") from None
    if not isinstance(document, dict) or "restow_plan" not in document:
        raise InvalidDocument(
            f"{source} is not a plan of Restow: make one with `restow plan`, "
            "or with `restow plan from-json` from Kafka's reassignment JSON"
        )
    plan = plan_from(document, source)
    _check_steps(plan, source)
    return plan


def plan_from(document: Mapping[str, Any], source: str) -> Plan:
    """Return the plan in a document of `document_of`, of this or an earlier version; check its digest."""
    if "restow_plan" not in document and "order" in document:
        document = _of_an_early_journal(document)
    version: Any = document.get("restow_plan")
    if isinstance(version, bool) or version not in range(_OLDEST, VERSION + 1):
        raise InvalidDocument(
            f"{source} is a plan of format {fields.shown(version)}; this Restow reads the formats {_OLDEST} "
            f"to {VERSION}"
        )
    with fields.damage_named(source, "Make the plan again"):
        plan = _plan(document)
        start = _starting_hash(plan) if version == 1 else ""
    if version == 1 and document.get("starting_hash", start) != start:
        raise InvalidDocument(
            f"{source} is damaged: its moves do not start from what its hash says. Make the plan again"
        )
    if version != 1 and (made := digest_of(plan)) != document.get("digest"):
        raise InvalidDocument(
            f"{source} was changed after it was made: it says {document.get('digest')!s:.80}, but its "
            f"content has the digest {made}. Use the file that was approved, or make the plan again"
        )
    return plan


def _digest(plan: Plan, body: str) -> str:
    """Return the digest and cache it with the plan: for a million moves it takes seconds."""
    found = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
    vars(plan)[_KEPT] = found
    return found


def _body(plan: Plan) -> str:
    """Return the file's text without the format and the digest."""
    head: dict[str, object] = {
        "cluster_id": plan.cluster_id,
        "created_ms": plan.created_ms,
        "title": plan.title,
        "limits": asdict(plan.limits) | {"fill": float(plan.limits.fill)},
    }
    if plan.bound_bytes is not None:
        head |= {"bound_bytes": plan.bound_bytes, "bound_by": plan.bound_by}
    if plan.topic_ids:
        head["topic_ids"] = dict(sorted(plan.topic_ids.items()))
    if plan.promises:
        head["promises"] = [_promise_fields(each) for each in plan.promises]
    if plan.known_partitions:
        head["known_partitions"] = dict(sorted(plan.known_partitions.items()))
    if plan.leaves:
        head["leaves"] = [
            {"topic": each.partition.topic, "partition": each.partition.partition, "why": each.why}
            for each in plan.leaves
        ]
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    quoted: Callable[[str], str] = cache(json.dumps)
    changes = [(move, _change(move, quoted)) for move in plan.moves]
    moves = one_per_line([_move_text(move, text, quoted) for move, text in changes])
    whole = {move.partition: (move.before, move.after, text) for move, text in changes}
    steps = ([_step_text(step, whole, quoted) for step in wave] for wave in plan.waves)
    waves = ",\n".join(f"[{one_per_line(wave)}]" for wave in steps)
    return f'{lines},\n"moves": [{moves}],\n"waves": [{waves}]'


_FACTOR = "factor"
"""The file's name for the replication factor: a new name would change the digests of existing plans."""


def _promise_fields(promise: Promise) -> dict[str, object]:
    found = asdict(promise) | {"band": None if promise.band is None else float(promise.band)}
    return {
        _FACTOR if key == "replication_factor" else key: value
        for key, value in found.items()
        if value not in ((), None, "")
    }


def _move_text(move: Move, change: str, quoted: Callable[[str], str]) -> str:
    """Format a move by hand: a JSON encoder takes seconds for a million. `quoted` encodes strings."""
    parts = [f'{change}, "size_bytes": {move.size_bytes}']
    if move.log_dirs:
        parts.append(f'"log_dirs": [{", ".join(map(quoted, move.log_dirs))}]')
    if move.dirs_before:
        dirs = [f'"{broker}": {quoted(path)}' for broker, path in sorted(move.dirs_before.items())]
        parts.append(f'"dirs_before": {{{", ".join(dirs)}}}')
    if move.sizes:
        sizes = [f'"{broker}": {size}' for broker, size in sorted(move.sizes.items())]
        parts.append(f'"sizes": {{{", ".join(sizes)}}}')
    if move.reason:
        parts.append(f'"reason": {quoted(move.reason)}')
    return f"{{{', '.join(parts)}}}"


def _step_text(
    step: Step,
    whole: Mapping[TopicPartition, tuple[tuple[BrokerId, ...], tuple[BrokerId, ...], str]],
    quoted: Callable[[str], str],
) -> str:
    """Format a step. Most steps are their whole move, whose text exists already."""
    before, after, text = whole.get(step.partition, ((), (), ""))
    same = step.before == before and step.after == after
    return f"{{{text if same else _change(step, quoted)}}}"


def _change(change: Move | Step, quoted: Callable[[str], str]) -> str:
    topic, partition = change.partition
    before, after = [*change.before], [*change.after]
    return f'"topic": {quoted(topic)}, "partition": {partition}, "before": {before}, "after": {after}'


def _plan(document: Mapping[str, Any]) -> Plan:
    moves = tuple(_move(each) for each in fields.items(document["moves"]))
    of = {move.partition: move for move in moves}
    if len(of) < len(moves):
        raise ValueError("a partition has two moves")
    bound = document.get("bound_bytes")
    return Plan(
        cluster_id=fields.text(document["cluster_id"]),
        created_ms=fields.number(document["created_ms"]),
        moves=moves,
        waves=tuple(
            tuple(_step(each, of) for each in fields.items(wave)) for wave in fields.items(document["waves"])
        ),
        limits=_limits(fields.members(document["limits"])),
        title=fields.text(document.get("title", "")),
        bound_bytes=None if bound is None else fields.number(bound),
        bound_by=fields.text(document.get("bound_by", "")),
        topic_ids={
            fields.text(topic): fields.text(known)
            for topic, known in fields.members(document.get("topic_ids", {})).items()
        },
        promises=tuple(_promise(each) for each in fields.items(document.get("promises", []))),
        known_partitions={
            fields.text(topic): fields.number(known, fields.INT_MAX)
            for topic, known in fields.members(document.get("known_partitions", {})).items()
        },
        leaves=tuple(
            Left(partition=_partition(each), why=fields.text(each["why"]))
            for each in fields.items(document.get("leaves", []))
        ),
    )


def _limits(document: Mapping[str, Any]) -> Limits:
    limits = Limits(
        extra_copies=fields.number(document["extra_copies"], fields.INT_MAX),
        moves_in=fields.number(document["moves_in"], fields.INT_MAX),
        moves_out=fields.number(document["moves_out"], fields.INT_MAX),
        fill=fields.real(document["fill"]),
    )
    check_limits(limits)
    return limits


def _promise(document: Mapping[str, Any]) -> Promise:
    replication_factor, band = document.get(_FACTOR), document.get("band")
    return Promise(
        kind=fields.text(document["kind"]),
        brokers=fields.brokers(document.get("brokers", [])),
        topics=fields.texts(document.get("topics", [])),
        replication_factor=None
        if replication_factor is None
        else fields.number(replication_factor, fields.INT_MAX),
        goal=fields.text(document.get("goal", "")),
        band=None if band is None else fields.real(band),
    )


def _move(document: Mapping[str, Any]) -> Move:
    name, after = _partition(document), _replicas(document["after"])
    dirs = fields.texts(document.get("log_dirs", []))
    if dirs and len(dirs) != len(after):
        raise ValueError(f"{name} has {len(after)} replicas but {len(dirs)} log dirs")
    return Move(
        partition=name,
        before=_replicas(document["before"]),
        after=after,
        size_bytes=fields.number(document["size_bytes"]),
        log_dirs=dirs,
        dirs_before=fields.by_broker(document.get("dirs_before", {}), fields.text),
        reason=fields.text(document.get("reason", "")),
        sizes=fields.by_broker(document.get("sizes", {}), fields.number),
    )


def _step(document: Mapping[str, Any], moves: Mapping[TopicPartition, Move]) -> Step:
    name, after = _partition(document), _replicas(document["after"])
    move = moves.get(name)
    if move is None:
        raise ValueError(f"a step of {name}, which has no move")
    wanted = dict(zip(move.after, move.log_dirs, strict=False))
    return Step(
        partition=name,
        before=_replicas(document["before"]),
        after=after,
        size_bytes=move.size_bytes,
        log_dirs=tuple(wanted.get(broker, ANY_DIR) for broker in after) if wanted else (),
    )


def _check_steps(plan: Plan, source: str) -> None:
    """Refuse steps that do not lead from the start of their move to its end."""
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


def _of_an_early_journal(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a journal of an early version says of its plan, as the file of format 1 would say it."""
    moves = {partition_of(each["partition"]): each for each in document["moves"]}
    order = dict.fromkeys((*map(partition_of, document["order"]), *moves))
    named = [{**moves[name], "topic": name.topic, "partition": name.partition} for name in order]
    return {**document, "restow_plan": 1, "moves": named, "waves": []}


def step_document(step: Step) -> dict[str, Any]:
    """A step by itself, as a journal has it."""
    return {
        "partition": list(step.partition),
        "before": list(step.before),
        "after": list(step.after),
        "size_bytes": step.size_bytes,
        "log_dirs": list(step.log_dirs),
    }


def step_of(document: Mapping[str, Any]) -> Step:
    """Read what `step_document` made; raise one of `fields.DAMAGE` if it is no step."""
    return Step(
        partition=partition_of(document["partition"]),
        before=_replicas(document["before"]),
        after=_replicas(document["after"]),
        size_bytes=fields.number(document["size_bytes"]),
        log_dirs=fields.texts(document["log_dirs"]),
    )


def partition_of(pair: Any) -> TopicPartition:
    """Read a topic and a number."""
    topic, number = pair
    return TopicPartition(fields.text(topic), fields.number(number, fields.INT_MAX))


def _partition(document: Mapping[str, Any]) -> TopicPartition:
    return partition_of((document["topic"], document["partition"]))


def _replicas(value: object) -> tuple[BrokerId, ...]:
    found = fields.brokers(value)
    if not found:
        raise ValueError("a list of replicas is empty")
    return found


def _starting_hash(plan: Plan) -> str:
    """Return the hash that files of format 1 have instead of a digest, over the replicas before."""
    lines = [
        f"{topic}\0{partition}\0{','.join(map(str, replicas))}\n"
        for (topic, partition), replicas in sorted((move.partition, move.before) for move in plan.moves)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
