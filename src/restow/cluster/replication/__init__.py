"""Replication: copies of a partition's records on several brokers, with ISR and high watermark.

`ReplicaManager` manages the replicas of one broker; a `HostedPartition` is one of them. `isr.py` decides when
the ISR shrinks and grows; `fetcher.py` fetches for followers.
"""

from restow.cluster.replication.manager import ReplicaManager
from restow.cluster.replication.partition import HostedPartition, Role
from restow.cluster.replication.throttling import Throttles
from restow.cluster.replication.values import (
    EpochQuestion,
    FetchAnswer,
    FetchPartition,
    FetchSpec,
    FoundOffset,
    LowWatermark,
    OffsetQuestion,
    ReplicationConfig,
)

__all__ = [
    "EpochQuestion",
    "FetchAnswer",
    "FetchPartition",
    "FetchSpec",
    "FoundOffset",
    "HostedPartition",
    "LowWatermark",
    "OffsetQuestion",
    "ReplicaManager",
    "ReplicationConfig",
    "Role",
    "Throttles",
]
