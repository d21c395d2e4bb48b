"""What a cluster reports of itself, beyond the values of snapshots."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow._frozen import frozen
from restow.model import Copy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, LogDir, Rack, TopicPartition

Committed: TypeAlias = "Mapping[TopicPartition, int]"
"""The committed offsets of a group."""


@frozen
class Node:
    """A broker and its address."""

    id: BrokerId
    host: str
    port: int
    rack: Rack | None = None


@frozen
class ClusterView:
    """The cluster in one broker's metadata; `Admin.controller` returns the controller."""

    cluster_id: str
    nodes: tuple[Node, ...]


@frozen
class Quorum:
    """The metadata quorum of a cluster without ZooKeeper; its leader is the controller."""

    leader: BrokerId | None
    voters: tuple[BrokerId, ...]


class ConfigResource(NamedTuple):
    """The owner of configs: `of` is "topic" or "broker"; a broker's name is its id, or empty for all."""

    of: str
    name: str


@frozen
class Config:
    """One config in force."""

    name: str
    value: str | None
    source: str
    """Its source: "topic", "broker", "default broker", "static", "default"."""
    sensitive: bool = False
    read_only: bool = False


class TopicPartitionReplica(NamedTuple):
    """One replica on one broker."""

    partition: TopicPartition
    broker: BrokerId


@frozen
class ReplicaOnDisk:
    """A replica as its broker describes it."""

    partition: TopicPartition
    log_dir: str
    size_bytes: int
    lag_messages: int
    future: bool

    def copy_on(self, broker: BrokerId) -> Copy:
        """Return it as a snapshot has it: without its partition, and with its broker."""
        return Copy(broker, self.log_dir, self.size_bytes, self.lag_messages, self.future)


@frozen
class BrokerLogDirs:
    """The log dirs of one broker."""

    log_dirs: tuple[LogDir, ...] = ()
    replicas: tuple[ReplicaOnDisk, ...] = ()


@frozen
class OffsetRange:
    """The offsets of a partition: the first record's, and the next to be written."""

    earliest: int
    latest: int
    leader_epoch: int | None = None


@frozen
class GroupMember:
    """A consumer in a group. `topics` is None before it has subscribed."""

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    rack: Rack | None = None
    topics: tuple[str, ...] | None = None
    held: tuple[TopicPartition, ...] = ()
    protocol: str = "classic"
    """The group protocol that it uses: `classic`, or `consumer`."""
    epoch: int | None = None
    """In a group of the protocol `consumer`."""
    target: tuple[TopicPartition, ...] | None = None
    """What it shall have, in such a group."""


@frozen
class ConsumerGroup:
    """A group as its coordinator describes it."""

    name: str
    state: str
    protocol: str = "classic"
    """`classic`, `consumer`, or what else the broker calls it."""
    epoch: int | None = None
    """Of a group of the protocol `consumer`; its members follow."""
    assignor: str | None = None
    members: tuple[GroupMember, ...] = ()


@frozen
class PartitionReassignment:
    """A reassignment in progress."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


@frozen
class NewTopic:
    """A topic to create: a number of partitions and a factor, or replicas by hand."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    by_hand: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
