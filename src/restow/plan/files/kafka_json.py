"""Kafka's own JSON files for reassignments: read by its rules, written in its order of fields.

    {"version": 1, "partitions": [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}]}
    {"version": 1, "topics": [{"topic": "t"}]}

A missing version counts as 1, missing `log_dirs` as all "any". Unknown fields are ignored, as in Kafka.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from restow.errors import InvalidDocument
from restow.model import ANY_DIR, TopicPartition
from restow.plan.pin import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import BrokerId, Plan

_VERSION = 1


class InvalidReassignment(InvalidDocument):
    """A file that Kafka's tool would refuse; `kafka_says` is that tool's message."""

    def __init__(self, message: str, kafka_says: str) -> None:
        super().__init__(message)
        self.kafka_says = kafka_says


def parse_reassignment(text: str, source: str = "the reassignment") -> tuple[Target, ...]:
    """Return the target of each partition, in the file's order; `source` names the file in errors.

    Only the form is checked; `check_reassignment` has the rules of execution.
    """
    document = _document(text, source)
    return tuple(
        _target(entry, f"{source}, partitions[{index}]")
        for index, entry in enumerate(_list(document, "partitions", source))
    )


def check_reassignment(targets: Sequence[Target], source: str = "the reassignment") -> None:
    """Refuse what Kafka's tool refuses before it contacts a cluster."""
    if not targets:
        says = "Partition reassignment list cannot be empty"
        raise InvalidReassignment(f"{source} has no partitions: name at least one", says)
    for target in targets:
        if not target.replicas:
            says = "Partition replica list cannot be empty"
            raise InvalidReassignment(
                f"{source}: {target.partition} has no replicas: name at least one", says
            )
    twice = _repeated(target.partition for target in targets)
    if twice:
        names = ",".join(map(str, twice))
        says = f"Partition reassignment contains duplicate topic partitions: {names}"
        raise InvalidReassignment(f"{source}: {names} is there twice: keep one", says)
    doubles = [(target.partition, again) for target in targets if (again := _repeated(target.replicas))]
    if doubles:
        said = [f"{name} contains multiple entries for {_comma(again)}" for name, again in doubles]
        raise InvalidReassignment(
            f"{source}: {doubles[0][0]} names broker {doubles[0][1][0]} twice: keep one",
            f"Partition replica lists may not contain duplicate entries: {'. '.join(said)}",
        )


def parse_topics(text: str) -> tuple[str, ...]:
    """Return the topics to move, each once."""
    source = "the list of topics"
    document = _document(text, source)
    topics = []
    for index, entry in enumerate(_list(document, "topics", source)):
        where = f"{source}, topics[{index}]"
        topics.append(_text(_field(_record(entry, where), "topic", where), f"{where}.topic"))
    if twice := _repeated(topics):
        raise InvalidReassignment(
            f"{source}: topic {twice[0]!r} is there twice: keep one",
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]",
        )
    return tuple(topics)


def format_reassignment(
    replicas: Mapping[TopicPartition, Sequence[BrokerId]],
    log_dirs: Mapping[tuple[TopicPartition, BrokerId], str] | None = None,
) -> str:
    """Return one line of JSON as Kafka's tool writes it: sorted, with a log dir for every replica."""
    dirs = log_dirs or {}
    entries = (
        f'{{"topic":{json.dumps(name.topic)},"partition":{name.partition},'
        f'"replicas":[{_comma(brokers)}],'
        f'"log_dirs":[{",".join(json.dumps(dirs.get((name, broker), ANY_DIR)) for broker in brokers)}]}}'
        for name, brokers in sorted(replicas.items())
    )
    return f'{{"version":{_VERSION},"partitions":[{",".join(entries)}]}}'


def reassignment_document(
    entries: Iterable[tuple[TopicPartition, Sequence[BrokerId], Sequence[str]]],
) -> dict[str, object]:
    """Return the document that Kafka's tool reads: partitions, replicas, and log dirs if any."""
    rows: list[dict[str, object]] = []
    for name, replicas, dirs in entries:
        row = {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
        rows.append(row | {"log_dirs": list(dirs)} if dirs else row)
    return {"version": _VERSION, "partitions": rows}


def there_and_back(plan: Plan) -> tuple[dict[str, object], dict[str, object]]:
    """Return a plan and its inverse for Kafka's tool, which has neither waves nor limits."""
    back = []
    for move in plan.moves:
        dirs = [move.dirs_before.get(broker, ANY_DIR) for broker in move.before] if move.log_dirs else []
        back.append((move.partition, move.before, dirs))
    there = ((move.partition, move.after, move.log_dirs) for move in plan.moves_in_order)
    return reassignment_document(there), reassignment_document(back)


def _document(text: str, source: str) -> Mapping[str, Any]:
    """Parse the file and check its version."""
    says = "The input string is not a valid JSON"
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidReassignment(f"{source} is not JSON: {error}", says) from None
    except RecursionError:
        raise InvalidReassignment(f"{source} is nested too deeply", says) from None
    document = _record(value, source)
    version = document.get("version", _VERSION)
    _integer(version, f"{source}, version")
    if version != _VERSION:
        raise InvalidReassignment(
            f"{source} is of version {version!r}: only version {_VERSION} is known",
            f"Not supported version field value {version}",
        )
    return document


def _target(entry: object, where: str) -> Target:
    fields = _record(entry, where)
    name = TopicPartition(
        _text(_field(fields, "topic", where), f"{where}.topic"),
        _integer(_field(fields, "partition", where), f"{where}.partition"),
    )
    replicas = tuple(
        _integer(each, f"{where}.replicas") for each in _array(_field(fields, "replicas", where), where)
    )
    dirs = tuple(_text(each, f"{where}.log_dirs") for each in _array(fields.get("log_dirs", []), where))
    if "log_dirs" in fields and len(dirs) != len(replicas):
        raise InvalidReassignment(
            f"{where}: {name} has {len(replicas)} replicas but {len(dirs)} log dirs: name one for each",
            f"Size of replicas list {_brackets(replicas)} is different from size of log dirs list "
            f"{_brackets(dirs)} for partition {name}",
        )
    return Target(partition=name, replicas=replicas, log_dirs=dirs)


def _record(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _wrong(where, "an object", value)
    return value


def _list(document: Mapping[str, Any], key: str, source: str) -> Sequence[object]:
    """Return a list; a missing one counts as empty."""
    return _array(document.get(key, []), f"{source}, {key}")


def _array(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list):
        _wrong(where, "a list", value)
    return value


def _field(fields: Mapping[str, Any], key: str, where: str) -> object:
    if key not in fields:
        raise InvalidReassignment(f"{where} has no {key}", f"No such field exists: `{key}`")
    return fields[key]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        _wrong(where, "a string", value)
    return value


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        _wrong(where, "a whole number", value)
    return value


def _wrong(where: str, expected: str, value: object) -> NoReturn:
    found = json.dumps(value)
    shown = found if len(found) <= 40 else f"{found[:40]}…"
    raise InvalidReassignment(
        f"{where}: expected {expected}, found {shown}", f"Expected {expected}, received {shown}"
    )


def _repeated(items: Iterable[Any]) -> list[Any]:
    seen: set[Any] = set()
    found: dict[Any, None] = {}
    for item in items:
        if item in seen:
            found[item] = None
        seen.add(item)
    return list(found)


def _comma(items: Iterable[object]) -> str:
    return ",".join(map(str, items))


def _brackets(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"
