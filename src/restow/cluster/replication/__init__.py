"""Replication: a partition's records on several brokers, and what of them is safe.

`ReplicaManager` looks after the replicas of one broker, `Partition` is one of them. Where the ISR shrinks and
grows is decided in `isr.py`; where followers fetch is `fetcher.py`.
"""

from __future__ import annotations

from restow.cluster.replication.manager import ReplicaManager
from restow.cluster.replication.partition import Partition, PartitionOrder, Role
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
    "IsrWriter",
    "LeaderClient",
    "LowWatermark",
    "OffsetQuestion",
    "Partition",
    "PartitionOrder",
    "ReplicaManager",
    "ReplicationConfig",
    "Role",
    "Throttle",
    "Throttles",
]
