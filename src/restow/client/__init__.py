"""The client for any cluster, over Kafka's protocol alone; embedded ones are no exception."""

from restow.client.admin import Admin, versions_of
from restow.client.bootstrap import ConnectionSettings
from restow.client.errors import DENIALS, BrokerError, ClientError, Unreachable
from restow.client.group_lag import GroupLag, PartitionLag, UnknownGroup, group_lags
from restow.client.group_lock import SESSION_S, GroupLock, GroupLockHolder
from restow.client.kafka_admin import KafkaAdmin, ask_cluster, connected, hush, run_alone
from restow.client.values import (
    BrokerLogDirs,
    ClusterView,
    Config,
    ConfigResource,
    ConsumerGroup,
    NewTopic,
    Node,
    OffsetRange,
    PartitionReassignment,
    Quorum,
    ReplicaOnDisk,
    TopicPartitionReplica,
)
from restow.client.zookeeper import ZooKeeperAdmin, zookeeper_connected

__all__ = [
    "DENIALS",
    "SESSION_S",
    "Admin",
    "BrokerError",
    "BrokerLogDirs",
    "ClientError",
    "ClusterView",
    "Config",
    "ConfigResource",
    "ConnectionSettings",
    "ConsumerGroup",
    "GroupLag",
    "GroupLock",
    "GroupLockHolder",
    "KafkaAdmin",
    "NewTopic",
    "Node",
    "OffsetRange",
    "PartitionLag",
    "PartitionReassignment",
    "Quorum",
    "ReplicaOnDisk",
    "TopicPartitionReplica",
    "UnknownGroup",
    "Unreachable",
    "ZooKeeperAdmin",
    "ask_cluster",
    "connected",
    "group_lags",
    "hush",
    "run_alone",
    "versions_of",
    "zookeeper_connected",
]
