"""The ZooKeeper nodes that the old way of changing a cluster needs."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from dataclasses import field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from restow._frozen import frozen
from restow.client.errors import ClientError
from restow.client.values import Node
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import BrokerId

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER = "/cluster/id"
CONTROLLER = "/controller"
CONFIGS = {"topic": "/config/topics", "broker": "/config/brokers"}
CONFIG_CHANGE = "/config/changes/config_change_"
ALL_BROKERS = "<default>"
REASSIGN = "/admin/reassign_partitions"
ELECT = "/admin/preferred_replica_election"
LONGEST_BYTES = 1_000_000
"""A little below ZooKeeper's default limit for a node."""

_ENDPOINT = re.compile(r"[\w.-]+://(?:\[([\w.:%-]+)\]|([\w.-]*)):([0-9]{1,5})", re.ASCII)


@frozen
class TopicAssignment:
    """`/brokers/topics/<topic>`: replicas in order; since Kafka 2.4 with adding and removing replicas."""

    replicas: Mapping[int, tuple[BrokerId, ...]]
    adding: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    id: str | None = None


def state_path(partition: TopicPartition) -> str:
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}/state"


def config_path(of: str, name: str) -> str:
    return f"{CONFIGS[of]}/{name or ALL_BROKERS}"


def parse(path: str, data: bytes) -> dict[str, Any]:
    """Return the object in a node."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise unreadable(path)
    return found


def unreadable(path: str) -> ClientError:
    return ClientError(f"the node {path} in ZooKeeper does not hold what Kafka writes there")


def read_node(path: str, data: bytes) -> Node:
    """Read a broker, with its first plaintext listener, or else its first."""
    found = parse(path, data)
    try:
        host, port = found.get("host"), found.get("port", -1)
        if not host or port < 0:
            match = _ENDPOINT.fullmatch(found["endpoints"][0])
            host, port = (match[1] or match[2], int(match[3])) if match else ("", -1)
        return Node(id=int(path.rpartition("/")[2]), host=host, port=port, rack=found.get("rack"))
    except (KeyError, IndexError, TypeError, ValueError):
        raise unreadable(path) from None


def read_assignment(path: str, data: bytes) -> TopicAssignment:
    found = parse(path, data)
    try:
        identity = found.get("topic_id")
        return TopicAssignment(
            replicas=_by_number(found["partitions"]),
            adding=_by_number(found.get("adding_replicas") or {}),
            removing=_by_number(found.get("removing_replicas") or {}),
            id=str(UUID(bytes=urlsafe_b64decode(f"{identity}=="))) if identity else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise unreadable(path) from None


def _by_number(found: Mapping[str, Iterable[int]]) -> dict[int, tuple[int, ...]]:
    return {int(number): tuple(map(int, replicas)) for number, replicas in found.items()}


def read_state(path: str, data: bytes) -> tuple[BrokerId | None, tuple[BrokerId, ...]]:
    """Return a partition's leader and ISR."""
    found = parse(path, data)
    try:
        leader = int(found["leader"])
        return (leader if leader >= 0 else None), tuple(map(int, found["isr"]))
    except (KeyError, TypeError, ValueError):
        raise unreadable(path) from None


def read_config(path: str, data: bytes) -> dict[str, str]:
    """Read configs; a node without data has none."""
    if not data:
        return {}
    found = parse(path, data).get("config")
    if not isinstance(found, dict):
        raise unreadable(path)
    return {str(name): str(value) for name, value in found.items()}


def write_config(configs: Mapping[str, str]) -> bytes:
    return _render({"version": 1, "config": dict(configs)})


def write_config_change(of: str, name: str) -> bytes:
    """Return the notification that makes brokers read configs again."""
    return _render({"version": 2, "entity_path": f"{of}s/{name or ALL_BROKERS}"})


def read_targets(path: str, data: bytes) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    found = parse(path, data)
    try:
        return {
            TopicPartition(str(each["topic"]), int(each["partition"])): tuple(map(int, each["replicas"]))
            for each in found["partitions"]
        }
    except (KeyError, TypeError, ValueError):
        raise unreadable(path) from None


def write_targets(targets: Mapping[TopicPartition, Iterable[BrokerId]]) -> bytes:
    entries = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for (topic, number), replicas in targets.items()
    ]
    return _render({"version": 1, "partitions": entries})


def write_election(partitions: Iterable[TopicPartition]) -> bytes:
    entries = [{"topic": topic, "partition": number} for topic, number in partitions]
    return _render({"version": 1, "partitions": entries})


def _render(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
