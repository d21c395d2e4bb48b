"""The work of `benchmarks.reassign`: topics with given replicas, moves by the API or the znode."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError
from kazoo.client import KazooClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Assignment: TypeAlias = "dict[int, list[int]]"
"""The replicas of each partition of a topic, the preferred leader first."""

_PATIENCE_S = 600.0
_LOOK_S = 0.05
_ZNODE = "/admin/reassign_partitions"
_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


@contextmanager
def admin_of(bootstrap: str) -> Iterator[KafkaAdminClient]:
    """Yield an admin client for as long as the block lasts."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=120_000)
    try:
        yield admin
    finally:
        admin.close()


def broker_ids(admin: KafkaAdminClient) -> list[int]:
    """Return the sorted broker ids."""
    return sorted(int(each["broker_id"]) for each in admin.describe_cluster()["brokers"])


def create(admin: KafkaAdminClient, topic: str, assignment: Assignment) -> None:
    """Create a topic with these replicas, and wait until every partition has a leader."""
    admin.create_topics({topic: {"assignments": assignment}}, timeout_ms=120_000)
    _until(lambda: _is_led(admin, topic, len(assignment)), f"leaders of {topic}")


def _is_led(admin: KafkaAdminClient, topic: str, partitions: int) -> bool:
    found = [each for each in admin.describe_topics([topic]) if each["name"] == topic]
    states = found[0]["partitions"] if found else []
    return len(states) == partitions and all(each["leader_id"] >= 0 for each in states)


def move_by_api(admin: KafkaAdminClient, topic: str, target: Assignment) -> float:
    """Return the seconds from the request until no partition is moving."""
    targets = {TopicPartition(topic, number): replicas for number, replicas in target.items()}
    began_s = time.monotonic()
    refused = {key: error for key, error in admin.alter_partition_reassignments(targets).items() if error}
    if refused:
        raise SystemExit(f"refused to move: {refused}")
    _until(lambda: not admin.list_partition_reassignments(), f"the move of {topic}")
    took_s = time.monotonic() - began_s
    check(admin, topic, target)
    return took_s


def move_by_znode(admin: KafkaAdminClient, zookeeper: str, topic: str, target: Assignment) -> float:
    """Return the seconds from writing the znode until the controller has removed it."""
    document = {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": number, "replicas": replicas} for number, replicas in target.items()
        ],
    }
    client = KazooClient(hosts=zookeeper)
    client.start()
    try:
        began_s = time.monotonic()
        client.create(_ZNODE, json.dumps(document).encode())
        _until(lambda: client.exists(_ZNODE) is None, "the removal of the node")
        took_s = time.monotonic() - began_s
    finally:
        client.stop()
        client.close()
    check(admin, topic, target)
    return took_s


def check(admin: KafkaAdminClient, topic: str, target: Assignment) -> None:
    """Wait until every partition has its target replicas in sync; a broker may learn of it late."""

    def is_done() -> bool:
        states = admin.describe_topics([topic])[0]["partitions"]
        return all(
            each["replica_nodes"] == target[each["partition_index"]]
            and sorted(each["isr_nodes"]) == sorted(target[each["partition_index"]])
            for each in states
        )

    _until(is_done, f"{topic} as it was asked for")


@contextmanager
def throttled(admin: KafkaAdminClient, topic: str, bytes_per_s: int) -> Iterator[None]:
    """Throttle all replicas of a topic on every broker, as `kafka-reassign-partitions` does."""
    lists = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
    resources = [(ConfigResourceType.TOPIC, topic, lists)]
    rates = dict.fromkeys(_RATES, str(bytes_per_s))
    resources += [(ConfigResourceType.BROKER, str(number), rates) for number in broker_ids(admin)]
    for kind, name, configs in resources:
        _configure(admin, kind, name, {key: ("SET", value) for key, value in configs.items()})
    try:
        yield
    finally:
        for kind, name, configs in resources:
            _configure(admin, kind, name, dict.fromkeys(configs, ("DELETE", None)))


def forget_soon(admin: KafkaAdminClient) -> None:
    """Let brokers delete old replicas within a second after a move.

    After the minute that it would lie there otherwise, much of it is being written to the disk, and that is
    then what takes the time of the next move.
    """
    for number in broker_ids(admin):
        changes: dict[str, tuple[str, str | None]] = {"log.segment.delete.delay.ms": ("SET", "1000")}
        _configure(admin, ConfigResourceType.BROKER, str(number), changes)


def _configure(
    admin: KafkaAdminClient, kind: ConfigResourceType, name: str, changes: dict[str, tuple[str, str | None]]
) -> None:
    admin.alter_configs([ConfigResource(kind, name, changes)], raise_on_unknown=False)


def bytes_on(admin: KafkaAdminClient, broker: int, topic: str) -> int:
    """Return a broker's bytes of a topic, from DescribeLogDirs."""
    total = 0
    for answer in admin.describe_log_dirs([topic], brokers=[broker]):
        for log_dir in answer["log_dirs"]:
            for found in log_dir["topics"]:
                total += sum(each["partition_size"] for each in found["partitions"])
    return total


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            if condition():
                return
        except KafkaError:
            pass  # A cluster in motion may refuse now what it answers a moment later.
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {_PATIENCE_S:g} s: {what}")
        time.sleep(_LOOK_S)
