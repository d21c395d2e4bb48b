"""What a cluster tells of itself, beyond what snapshots already have words for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, LogDir, Rack, TopicPartition

Committed: TypeAlias = "Mapping[TopicPartition, int]"
"""How far a group has read, where it said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker and where it listens."""

    id: BrokerId
    host: str
    port: int
    rack: Rack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster as one of its brokers sees it; who controls it is told by `Admin.controller`."""

    cluster_id: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """Who keeps the metadata of a cluster without ZooKeeper; the leader is its controller."""

    leader: BrokerId | None
    voters: tuple[BrokerId, ...]


class ConfigResource(NamedTuple):
    """Whose configs: `of` is "topic" or "broker"; a broker's name is its id, or empty for the default."""

    of: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config as it is in force."""

    name: str
    value: str | None
    source: str
    """Where it comes from: "topic", "broker", "default broker", "static", "default"."""
    sensitive: bool = False
    read_only: bool = False


class TopicPartitionReplica(NamedTuple):
    """One replica on one broker."""

    partition: TopicPartition
    broker: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOnDisk:
    """What a broker says of one of its replicas."""

    partition: TopicPartition
    log_dir: str
    size_bytes: int
    lag_messages: int
    future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogDirs:
    """What one broker says of its directories."""

    log_dirs: tuple[LogDir, ...] = ()
    replicas: tuple[ReplicaOnDisk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """What there is in a partition: from the first record's offset to the one that comes next."""

    earliest: int
    latest: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A consumer in a group. `topics` is None where it has not said yet what it wants."""

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    rack: Rack | None = None
    topics: tuple[str, ...] | None = None
    held: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """A group as its coordinator knows it."""

    name: str
    state: str
    assignor: str | None = None
    members: tuple[GroupMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReassignment:
    """A reassignment that the controller is carrying out."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be made: a number of partitions and a factor, or replicas by hand."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    by_hand: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
