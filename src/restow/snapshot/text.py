"""Snapshot files: JSON with one broker and one partition per line, sorted, so that `diff` can compare them.

    {"restow_snapshot": 1, "cluster_id": "…", "taken_ms": 1700000000000, "controller": 1, …
    "brokers": [
    {"id": 1, "host": "a", "port": 9092, …}],
    "topics": [
    {"name": "orders", …, "partitions": [
    {"number": 0, "replicas": [1, 2], "isr": [1, 2], "leader": 1,
     "copies": [[1, "/data", 1024, 0, false], …]}]}]}

A copy is a broker, a log dir, its bytes, its lag in messages, and whether it is a future replica. Before the
topics, `"groups"` may list consumer groups; a member is its id, its rack, and the partitions that it reads.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from sys import intern
from typing import TYPE_CHECKING, Any, TypeVar

from restow.errors import InvalidDocument
from restow.model import (
    Copy,
    LiveBroker,
    LogDir,
    Partition,
    ReadingGroup,
    ReadingMember,
    Snapshot,
    Topic,
    TopicPartition,
    fields,
)
from restow.model.long_json import read
from restow.text_files import one_per_line, read_text, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike

    from restow.model import BrokerId
    from restow.model.long_json import Pieces

T = TypeVar("T")
VERSION = 1
_COPY = (int, str, int, int, bool)


def dumps(snapshot: Snapshot) -> str:
    """Return the text of the snapshot's file."""
    head: dict[str, object] = {
        "restow_snapshot": VERSION,
        "cluster_id": snapshot.cluster_id,
        "taken_ms": snapshot.taken_ms,
        "controller": snapshot.controller,
        "default_configs": dict(sorted(snapshot.default_configs.items())),
        "unanswered": snapshot.unanswered,
        "hidden_topics": snapshot.hidden_topics,
        "denied": snapshot.denied,
    }
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    brokers = one_per_line(json.dumps(_broker_fields(each)) for each in snapshot.brokers)
    topics = one_per_line(_topic_text(each) for each in snapshot.topics)
    groups = one_per_line(json.dumps(_group_fields(each)) for each in snapshot.groups)
    told = f',\n"groups": [{groups}]' if groups else ""
    return f'{{{lines},\n"brokers": [{brokers}]{told},\n"topics": [{topics}]}}\n'


def loads(text: str, source: str = "the snapshot") -> Snapshot:
    """Parse the text of a snapshot's file; `source` names it in errors."""
    with fields.damage_named(source, "Take it again"):
        return read(text, "topics", "name", lambda document, pieces: _snapshot(document, pieces, source))


def read_snapshot(path: str | PathLike[str]) -> Snapshot:
    """Read a snapshot from its file.

    snapshot = restow.read_snapshot("now.json")
    """
    return loads(read_text(path), str(path))


def write_snapshot(snapshot: Snapshot, path: str | PathLike[str]) -> None:
    """Write a snapshot into a file that `read_snapshot` and the commands read.

    restow.write_snapshot(snapshot, "now.json")
    """
    write_text(path, dumps(snapshot))


def _broker_fields(broker: LiveBroker) -> dict[str, object]:
    return asdict(broker) | {"configs": dict(sorted(broker.configs.items()))}


def _topic_text(topic: Topic) -> str:
    head = {
        "name": topic.name,
        "id": topic.id,
        "internal": topic.internal,
        "min_insync_replicas": topic.min_insync_replicas,
        "configs": dict(sorted(topic.configs.items())),
    }
    partitions = one_per_line(json.dumps(_partition_fields(each)) for each in topic.partitions)
    return f'{json.dumps(head)[:-1]}, "partitions": [{partitions}]}}'


def _partition_fields(partition: Partition) -> dict[str, object]:
    found: dict[str, object] = {
        "number": partition.number,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "leader": partition.leader,
    }
    if partition.moving:
        found |= {"adding": partition.adding, "removing": partition.removing}
    found["copies"] = partition.copies
    return found


def _snapshot(document: Any, pieces: Pieces, source: str) -> Snapshot:
    if not isinstance(document, dict) or "restow_snapshot" not in document:
        raise InvalidDocument(f"{source} is not a snapshot of Restow: make one with `restow snapshot`")
    if document["restow_snapshot"] != VERSION:
        raise InvalidDocument(
            f"{source} is a snapshot of format {document['restow_snapshot']!r}; this Restow reads "
            f"format {VERSION}"
        )
    ids: dict[BrokerId, BrokerId] = {}
    return Snapshot(
        cluster_id=fields.text(document["cluster_id"]),
        taken_ms=fields.number(document["taken_ms"]),
        controller=fields.optional(document["controller"], fields.broker),
        brokers=_each_once(map(_broker, fields.items(document["brokers"])), lambda each: each.id, "broker"),
        topics=_each_once(
            (_topic(each, ids) for topics in pieces for each in topics), lambda each: each.name, "topic"
        ),
        default_configs=_configs(document["default_configs"]),
        unanswered=fields.brokers(document["unanswered"]),
        hidden_topics=fields.texts(document.get("hidden_topics", [])),
        denied=fields.texts(document.get("denied", [])),
        groups=_each_once(
            map(_group, fields.items(document.get("groups", []))), lambda each: each.name, "group"
        ),
    )


def _group_fields(group: ReadingGroup) -> dict[str, object]:
    return {
        "name": group.name,
        "protocol": group.protocol,
        "state": group.state,
        "coordinator": group.coordinator,
        "members": group.members,
    }


def _group(document: Mapping[str, Any]) -> ReadingGroup:
    return ReadingGroup(
        name=fields.text(document["name"]),
        protocol=fields.text(document["protocol"]),
        state=fields.text(document["state"]),
        coordinator=fields.broker(document["coordinator"]),
        members=tuple(map(_member, fields.items(document["members"]))),
    )


def _member(document: Any) -> ReadingMember:
    member, rack, partitions = document
    return ReadingMember(
        fields.text(member),
        fields.optional(rack, fields.text),
        tuple(
            TopicPartition(fields.text(topic), fields.number(number, fields.INT_MAX))
            for topic, number in fields.items(partitions)
        ),
    )


def _each_once(found: Iterable[T], name: Callable[[T], object], kind: str) -> tuple[T, ...]:
    there = tuple(found)
    seen = set()
    for each in there:
        if name(each) in seen:
            raise ValueError(f"{kind} {name(each)} is there twice")
        seen.add(name(each))
    return there


def _configs(value: object) -> dict[str, str]:
    return {fields.text(key): fields.text(each) for key, each in fields.members(value).items()}


def _broker(document: Mapping[str, Any]) -> LiveBroker:
    return LiveBroker(
        id=fields.broker(document["id"]),
        host=fields.text(document["host"]),
        port=fields.number(document["port"], 65535),
        rack=fields.optional(document["rack"], fields.text),
        log_dirs=_each_once(
            map(_log_dir, fields.items(document["log_dirs"])), lambda each: each.path, "log dir"
        ),
        configs=_configs(document["configs"]),
    )


def _log_dir(document: Mapping[str, Any]) -> LogDir:
    return LogDir(
        path=fields.text(document["path"]),
        total_bytes=fields.optional(document["total_bytes"], fields.number),
        usable_bytes=fields.optional(document["usable_bytes"], fields.number),
        failed=fields.flag(document["failed"]),
        cordoned=fields.flag(document.get("cordoned", False)),
    )


def _topic(document: Mapping[str, Any], ids: dict[BrokerId, BrokerId]) -> Topic:
    name = fields.text(document["name"])
    partitions = tuple(_partition(each, name, ids) for each in fields.items(document["partitions"]))
    if any(one.number >= next_.number for one, next_ in pairwise(partitions)):
        raise ValueError(f"the partitions of {name} are not in the order of their numbers")
    return Topic(
        name=name,
        partitions=partitions,
        id=fields.optional(document["id"], fields.text),
        internal=fields.flag(document["internal"]),
        configs=_configs(document["configs"]),
        min_insync_replicas=fields.number(document["min_insync_replicas"], fields.INT_MAX),
    )


def _partition(document: Mapping[str, Any], topic: str, ids: dict[BrokerId, BrokerId]) -> Partition:
    """Return a partition; fields are given by position, because names would double the time.

    All partitions share one object for each broker's id, and ISRs that are complete are the replicas: of
    200,000 partitions, that is 70 MB less.
    """
    number = fields.number(document["number"], fields.INT_MAX)
    replicas = tuple([ids.setdefault(each, each) for each in fields.brokers(document["replicas"])])
    isr, leader = fields.brokers(document["isr"]), document["leader"]
    made = Partition(
        number,
        replicas,
        replicas if isr == replicas else isr,
        leader if leader is None else ids.setdefault(fields.broker(leader), leader),
        fields.brokers(document.get("adding", [])),
        fields.brokers(document.get("removing", [])),
        tuple([_copy(each, ids) for each in fields.items(document["copies"])]),
    )
    if not replicas:
        raise ValueError(f"{topic}-{number} has no replicas")
    if not made.moving and (made.isr != replicas or leader not in replicas):
        stray = {*made.isr, leader} - {*replicas, None}
        if stray:
            raise ValueError(
                f"broker {min(stray)} is none of the replicas {list(replicas)} of {topic}-{number}"
            )
    return made


def _copy(value: object, ids: dict[BrokerId, BrokerId]) -> Copy:
    """Return a copy; all types are compared at once, because there are millions of copies."""
    if not isinstance(value, list) or tuple(map(type, value)) != _COPY:
        raise ValueError(f"{fields.shown(value)} is not a broker, a log dir, bytes, lag, and future or not")
    broker, path, size, lag, future = value
    fits = 0 <= broker <= fields.INT_MAX and 0 <= size <= fields.LONG_MAX and abs(lag) <= fields.LONG_MAX
    if not fits:
        raise ValueError(f"{fields.shown(value)} has a number that no replica can have")
    path = intern(path if path.isascii() else fields.text(path))
    return Copy(ids.setdefault(broker, broker), path, size, lag, future)
