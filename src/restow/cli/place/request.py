"""The topic that `restow place` works on, read from flags or from a file whose keys are the flags' names.

    brokers: 0-2:a,3-5:b            # or [0, 1, 2], or {a: [0, 1, 2], b: [3, 4, 5]}
    partitions: 12
    replication_factor: 3
    topic: orders

and, where wanted, racks, start_index, start_partition, seed, rack_mode, by_hand, current, to.
A present assignment (`current`) is Kafka's reassignment JSON, `{"0": [1, 2], …}` or `[[1, 2], …]`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen
from restow.cli.shared.documents import read_document
from restow.cli.shared.flags import (
    INT32_MAX,
    MAX_BROKERS,
    MAX_PARTITIONS,
    MAX_REPLICAS,
    parse_brokers,
)
from restow.errors import InvalidInput
from restow.model import Broker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cli.shared.documents import DocumentNode

_LIMITS = {
    "partitions": MAX_PARTITIONS,
    "replication_factor": MAX_BROKERS,
    "start_index": INT32_MAX,
    "start_partition": INT32_MAX,
    "seed": 2**63 - 1,
    "to": MAX_PARTITIONS,
}


@frozen
class PlaceRequest:
    """All options of `restow place`; None where one is not given."""

    brokers: str | tuple[Broker, ...] | None = None
    racks: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    start_index: int | None = None
    start_partition: int | None = None
    seed: int | None = None
    rack_mode: str | None = None
    topic: str | None = None
    by_hand: str | None = None
    current: Mapping[int, tuple[int, ...]] | None = None
    to: int | None = None

    def broker_list(self) -> tuple[Broker, ...]:
        if self.brokers is None:
            raise InvalidInput(
                "no brokers to place on: give --brokers, like --brokers 0-5 or --brokers 0:a,1:b,2:c"
            )
        if isinstance(self.brokers, str):
            return parse_brokers(self.brokers, self.racks)
        if self.racks is not None:
            return parse_brokers(",".join(_spelled(broker) for broker in self.brokers), self.racks)
        return self.brokers


def _spelled(broker: Broker) -> str:
    return str(broker.id) if broker.rack is None else f"{broker.id}:{broker.rack}"


def place_request(file: str | None, flags: PlaceRequest, current: str | None) -> PlaceRequest:
    """Merge file and flags; a flag overrides the file."""
    request = read_place_file(file) if file is not None else PlaceRequest()
    given = {f.name: getattr(flags, f.name) for f in fields(flags) if getattr(flags, f.name) is not None}
    request = replace(request, **given)
    if current is not None:
        now = read_current(current, request.topic)
        request = replace(request, current=now.replicas, topic=now.topic)
    _check_sizes(request)
    return request


def _check_sizes(request: PlaceRequest) -> None:
    for name, most in _LIMITS.items():
        value = getattr(request, name)
        if value is not None and not -INT32_MAX <= value <= most:
            flag = name.replace("_", "-")
            raise InvalidInput(f"--{flag}: that is out of range, the largest Restow takes is {most:,}")
    for name in ("start_index", "start_partition", "seed"):
        if (getattr(request, name) or 0) < 0:
            raise InvalidInput(f"--{name.replace('_', '-')} must be 0 or more, not {getattr(request, name)}")
    if (request.partitions or 0) * (request.replication_factor or 0) > MAX_REPLICAS:
        raise InvalidInput(f"more than {MAX_REPLICAS:,} replicas is more than Restow will lay out")


def read_place_file(path: str) -> PlaceRequest:
    """Read a topic file."""
    document = read_document(path)
    told = document.record([f.name for f in fields(PlaceRequest)])
    values: dict[str, object] = {
        key: told[key].integer(0, most) for key, most in _LIMITS.items() if key in told
    }
    values |= {key: told[key].text() for key in ("rack_mode", "topic", "by_hand") if key in told}
    if "brokers" in told:
        values["brokers"] = _brokers(told["brokers"])
    if "racks" in told:
        racks = told["racks"]
        values["racks"] = (
            racks.text() if isinstance(racks.value, str) else ",".join(r.text() for r in racks.items())
        )
    if "current" in told:
        now = _assignment(told["current"], told["topic"].text() if "topic" in told else None)
        values |= {"current": now.replicas, "topic": now.topic}
    return PlaceRequest(**values)  # type: ignore[arg-type]


def _brokers(node: DocumentNode) -> str | tuple[Broker, ...]:
    """Read a string as on the command line, a list of ids or {id, rack}, or a mapping of racks to ids."""
    if isinstance(node.value, str):
        return node.text()
    if isinstance(node.value, dict):
        return tuple(
            Broker(id=id_.integer(0, INT32_MAX), rack=rack)
            for rack, ids in node.mapping().items()
            for id_ in ids.items()
        )
    return tuple(_broker(item) for item in node.items())


def _broker(node: DocumentNode) -> Broker:
    if not isinstance(node.value, dict):
        return Broker(id=node.integer(0, INT32_MAX))
    told = node.record(("id", "rack"))
    if "id" not in told:
        node.fail("'id' is missing: write {id: 0, rack: a}")
    return Broker(id=told["id"].integer(0, INT32_MAX), rack=told["rack"].text() if "rack" in told else None)


class Current(NamedTuple):
    """A topic's present replicas by partition, and its name if the file has it."""

    replicas: dict[int, tuple[int, ...]]
    topic: str | None


def read_current(path: str, topic: str | None) -> Current:
    """Read the present replicas from a file; of several topics take the one that `topic` names."""
    return _assignment(read_document(path), topic)


def _assignment(node: DocumentNode, topic: str | None) -> Current:
    if isinstance(node.value, list):
        return Current({partition: _replicas(item) for partition, item in enumerate(node.items())}, topic)
    told = node.mapping()
    if "partitions" in told:
        return _kafka_assignment(node, topic)
    found: dict[int, tuple[int, ...]] = {}
    for name, replicas in told.items():
        if not (name.isascii() and name.isdigit() and len(name) <= 10):
            node.fail(
                f'{name!r} is not a partition: expected {{"0": [1, 2], …}} or Kafka\'s reassignment JSON'
            )
        found[int(name)] = _replicas(replicas)
    return Current(found, topic)


def _kafka_assignment(node: DocumentNode, topic: str | None) -> Current:
    """`{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1]}]}`."""
    told = node.record(("version", "partitions"))
    if "version" in told:
        told["version"].integer(1, 1)
    found: dict[int, tuple[int, ...]] = {}
    name = topic
    for entry in told["partitions"].items() if "partitions" in told else []:
        row = entry.record(("topic", "partition", "replicas", "log_dirs"))
        for key in ("topic", "partition", "replicas"):
            if key not in row:
                entry.fail(f"{key!r} is missing")
        if topic is not None and row["topic"].text() != topic:
            continue
        name = name or row["topic"].text()
        if row["topic"].text() != name:
            node.fail(f"it has several topics ({name}, {row['topic'].text()}, …): pick one with --topic")
        partition = row["partition"].integer(0, INT32_MAX)
        if partition in found:
            row["partition"].fail(f"partition {partition} is there twice: keep one")
        found[partition] = _replicas(row["replicas"])
    if not found:
        of = f" of topic {topic!r}: check --topic" if topic is not None else ""
        node.fail(f"it has no partitions{of}")
    return Current(found, name)


def _replicas(node: DocumentNode) -> tuple[int, ...]:
    return tuple(replica.integer(0, INT32_MAX) for replica in node.items())
