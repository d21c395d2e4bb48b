"""Snapshots as files: JSON with one broker and one partition per line, sorted, so that `diff` can read them.

    {"restow_snapshot": 1, "cluster_id": "…", "taken_ms": 1700000000000, "controller": 1, …
    "brokers": [
    {"id": 1, "host": "a", "port": 9092, …}],
    "topics": [
    {"name": "orders", …, "partitions": [
    {"number": 0, "replicas": [1, 2], "isr": [1, 2], "leader": 1,
     "copies": [[1, "/data", 1024, 0, false], …]}]}]}

A copy is a broker, a directory, its bytes, its lag in messages, and whether it is a future one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidDocument
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.model.long_json import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model.long_json import Pieces

VERSION = 1


def dumps(snapshot: Snapshot) -> str:
    """The file's text."""
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
    brokers = _lines(json.dumps(_broker_fields(each)) for each in snapshot.brokers)
    topics = _lines(_topic_text(each) for each in snapshot.topics)
    return f'{{{lines},\n"brokers": [{brokers}],\n"topics": [{topics}]}}\n'


def loads(text: str, source: str = "the snapshot") -> Snapshot:
    """A snapshot from a file's text. `source` is how complaints call it."""
    try:
        return read(text, "topics", "name", lambda document, pieces: _snapshot(document, pieces, source))
    except InvalidDocument:
        raise
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidDocument(f"{source} is not JSON: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidDocument(f"{source} is damaged: {what}. Take it again") from None


def _lines(records: Iterable[str]) -> str:
    found = ",\n".join(records)
    return f"\n{found}" if found else ""


def _broker_fields(broker: LiveBroker) -> dict[str, object]:
    return {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "log_dirs": [
            {
                "path": each.path,
                "total_bytes": each.total_bytes,
                "usable_bytes": each.usable_bytes,
                "failed": each.failed,
                "cordoned": each.cordoned,
            }
            for each in broker.log_dirs
        ],
        "configs": dict(sorted(broker.configs.items())),
    }


def _topic_text(topic: Topic) -> str:
    head = {
        "name": topic.name,
        "id": topic.id,
        "internal": topic.internal,
        "min_insync_replicas": topic.min_insync_replicas,
        "configs": dict(sorted(topic.configs.items())),
    }
    partitions = _lines(json.dumps(_partition_fields(each)) for each in topic.partitions)
    return f'{json.dumps(head)[:-1]}, "partitions": [{partitions}]}}'


def _partition_fields(partition: Partition) -> dict[str, object]:
    fields: dict[str, object] = {
        "number": partition.number,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "leader": partition.leader,
    }
    if partition.moving:
        fields |= {"adding": partition.adding, "removing": partition.removing}
    fields["copies"] = partition.copies
    return fields


def _snapshot(document: Any, pieces: Pieces, source: str) -> Snapshot:
    if not isinstance(document, dict) or "restow_snapshot" not in document:
        raise InvalidDocument(f"{source} is not a snapshot of Restow: make one with `restow snapshot`")
    if document["restow_snapshot"] != VERSION:
        raise InvalidDocument(
            f"{source} is a snapshot of format {document['restow_snapshot']!r}; this Restow reads "
            f"format {VERSION}"
        )
    return Snapshot(
        cluster_id=document["cluster_id"],
        taken_ms=document["taken_ms"],
        controller=document["controller"],
        brokers=tuple(_broker(each) for each in document["brokers"]),
        topics=tuple(_topic(each) for topics in pieces for each in topics),
        default_configs=document["default_configs"],
        unanswered=tuple(document["unanswered"]),
        hidden_topics=tuple(document.get("hidden_topics", ())),
        denied=tuple(document.get("denied", ())),
    )


def _broker(fields: Mapping[str, Any]) -> LiveBroker:
    return LiveBroker(
        **{**fields, "log_dirs": tuple(LogDir(**each) for each in fields["log_dirs"])},
    )


def _topic(fields: Mapping[str, Any]) -> Topic:
    topic = Topic(**{**fields, "partitions": tuple(_partition(each) for each in fields["partitions"])})
    for place, partition in enumerate(topic.partitions):
        if partition.number != place:
            raise ValueError(f"partition {partition.number} of {topic.name} is not in its place")
    return topic


def _partition(fields: Mapping[str, Any]) -> Partition:
    """In the order a partition has its fields: naming them takes as long again as making it."""
    return Partition(
        fields["number"],
        tuple(fields["replicas"]),
        tuple(fields["isr"]),
        fields["leader"],
        tuple(fields.get("adding", ())),
        tuple(fields.get("removing", ())),
        tuple(map(Copy._make, fields["copies"])),
    )
