"""A broker's logs: record batches on disk in Kafka's layout, so that Kafka's own tools read them.

`LogManager` manages the log dirs of one broker, `PartitionLog` is one partition in one of them.
"""

from restow.cluster.log.checkpoint import MetaProperties
from restow.cluster.log.config import LogConfig
from restow.cluster.log.epochs import EpochEndOffset, EpochStart, LeaderEpochs
from restow.cluster.log.log import AppendInfo, PartitionLog
from restow.cluster.log.manager import LogManager

__all__ = [
    "AppendInfo",
    "EpochEndOffset",
    "EpochStart",
    "LeaderEpochs",
    "LogConfig",
    "LogManager",
    "MetaProperties",
    "PartitionLog",
]
