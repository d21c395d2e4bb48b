"""Replication: copies of a partition's records on several brokers, with ISR and high watermark.

`ReplicaManager` manages the replicas of one broker; a `HostedPartition` is one of them. `isr.py` decides when
the ISR shrinks and grows; `fetcher.py` fetches for followers.
"""

from __future__ import annotations

from restow.cluster.replication.manager import ReplicaManager
from restow.cluster.replication.partition import HostedPartition, LeaderAndIsrPartition, Role
from restow.cluster.replication.throttling import Throttle, Throttles
from restow.cluster.replication.values import (
    CONSUMER,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    EpochQuestion,
    FetchAnswer,
    FetchPartition,
    FetchSpec,
    FoundOffset,
    IsrWriter,
    LeaderClient,
    LowWatermark,
    OffsetQuestion,
    ReplicationConfig,
)

__all__ = [
    "CONSUMER",
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "EpochQuestion",
    "FetchAnswer",
    "FetchPartition",
    "FetchSpec",
    "FoundOffset",
    "HostedPartition",
    "IsrWriter",
    "LeaderAndIsrPartition",
    "LeaderClient",
    "LowWatermark",
    "OffsetQuestion",
    "ReplicaManager",
    "ReplicationConfig",
    "Role",
    "Throttle",
    "Throttles",
]
