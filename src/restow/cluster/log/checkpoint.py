"""The small text files of a log dir, in Kafka's formats.

Checkpoints have a version, the number of entries, and one entry a line:

    replication-offset-checkpoint, recovery-point-offset-checkpoint,
    log-start-offset-checkpoint, cleaner-offset-checkpoint      `topic partition offset`
    leader-epoch-checkpoint (in a partition's directory)        `epoch start_offset`

`meta.properties` names the broker and cluster of a log dir, `partition.metadata` the topic id of a partition,
as `key=value` and `key: value` lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.log.epochs import EpochStart
from restow.cluster.log.errors import InvalidCheckpoint
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
_TOPIC_ID = re.compile(r"[\w-]{22}", re.ASCII)
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

_VERSION = 0


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Encode one offset per partition."""
    return _lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Decode the offsets, or raise InvalidCheckpoint."""
    entries = [line.split(" ") for line in _entries(data)]
    try:
        return {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in entries}
    except ValueError as error:
        raise InvalidCheckpoint(f"a checkpoint's line is not `topic partition offset`: {error}") from error


def encode_epochs(epochs: Iterable[EpochStart]) -> bytes:
    """Encode a log's leader epochs."""
    return _lines(f"{entry.epoch} {entry.start_offset}" for entry in epochs)


def decode_epochs(data: bytes) -> tuple[EpochStart, ...]:
    """Decode the epochs, or raise InvalidCheckpoint."""
    entries = [line.split(" ") for line in _entries(data)]
    try:
        return tuple(EpochStart(int(epoch), int(offset)) for epoch, offset in entries)
    except ValueError as error:
        raise InvalidCheckpoint(f"a checkpoint's line is not `epoch start_offset`: {error}") from error


class MetaProperties(NamedTuple):
    """The owner of a log dir."""

    cluster_id: str
    broker_id: int


def encode_meta(meta: MetaProperties) -> bytes:
    """Encode as brokers in ZooKeeper mode do."""
    return f"broker.id={meta.broker_id}\ncluster.id={meta.cluster_id}\nversion=0\n".encode()


def decode_meta(data: bytes) -> MetaProperties:
    """Decode broker and cluster from `meta.properties`; other entries are ignored."""
    lines = (line.partition("=") for line in _text(data).splitlines() if not line.startswith("#"))
    properties = {key.strip(): value.strip() for key, _, value in lines}
    try:
        broker = properties.get("broker.id") or properties["node.id"]
        return MetaProperties(properties["cluster.id"], int(broker))
    except (KeyError, ValueError) as error:
        raise InvalidCheckpoint(
            f"{META_PROPERTIES} must name cluster.id and broker.id, a number: {error}"
        ) from error


def encode_topic_id(topic_id: str) -> bytes:
    """Encode the topic id of a partition's directory."""
    return f"version: 0\ntopic_id: {topic_id}".encode()


def decode_topic_id(data: bytes) -> str:
    """Decode the topic id from `partition.metadata`, or raise InvalidCheckpoint.

    The file is not synced, so a power loss may cut it. Half an id would look like that of another topic.
    """
    for line in _text(data).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "topic_id" and _TOPIC_ID.fullmatch(value.strip()):
            return value.strip()
    raise InvalidCheckpoint(f"{PARTITION_METADATA} names no topic_id")


def _lines(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "".join(f"{line}\n" for line in (str(_VERSION), str(len(lines)), *lines)).encode()


def _entries(data: bytes) -> list[str]:
    lines = _text(data).splitlines()
    if len(lines) < 2 or lines[0] != str(_VERSION) or not lines[1].isdecimal():
        raise InvalidCheckpoint("a checkpoint must begin with its version 0 and the number of its entries")
    entries = [line for line in lines[2:] if line]
    if len(entries) != int(lines[1]):
        raise InvalidCheckpoint(f"a checkpoint of {lines[1]} entries has {len(entries)}")
    return entries


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidCheckpoint(f"a checkpoint must be UTF-8: {error}") from error
