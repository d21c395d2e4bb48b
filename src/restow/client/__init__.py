"""The way to a cluster, over Kafka's protocol alone: real and embedded ones are the same from here."""

from restow.client.admin import Admin, Measures
from restow.client.errors import DENIALS, BrokerError, ClientError, Unreachable
from restow.client.kafka_admin import KafkaAdmin, ask_cluster, connected, run_alone
from restow.client.opening import Settings
from restow.client.seat import SESSION_S, Occupant, Seat
from restow.client.values import (
    ClusterView,
    Config,
    ConfigOf,
    ConsumerGroup,
    Disks,
    GroupMember,
    MoveUnderWay,
    NewTopic,
    Node,
    OffsetRange,
    Quorum,
    ReplicaOf,
    ReplicaOnDisk,
)
from restow.client.versions import versions_of
from restow.client.zookeeper import ZooKeeperAdmin, zookeeper_connected

__all__ = [
    "DENIALS",
    "SESSION_S",
    "Admin",
    "BrokerError",
    "ClientError",
    "ClusterView",
    "Config",
    "ConfigOf",
    "ConsumerGroup",
    "Disks",
    "GroupMember",
    "KafkaAdmin",
    "Measures",
    "MoveUnderWay",
    "NewTopic",
    "Node",
    "Occupant",
    "OffsetRange",
    "Quorum",
    "ReplicaOf",
    "ReplicaOnDisk",
    "Seat",
    "Settings",
    "Unreachable",
    "ZooKeeperAdmin",
    "ask_cluster",
    "connected",
    "run_alone",
    "versions_of",
    "zookeeper_connected",
]
