"""Consumer groups of both protocols: members, assignments and committed offsets.

`GroupCoordinator` is the entry point. `ClassicGroup` and `ConsumerProtocolGroup` decide what an event means,
`RunningGroup` and `RunningConsumerGroup` carry it out, and a `RecordJournal` stores it.
"""

from restow.cluster.groups.config import GroupConfig
from restow.cluster.groups.consumer.members import ConsumerGroupMember
from restow.cluster.groups.consumer.requests import ConsumerGroupDescription, HeartbeatReply, HeartbeatRequest
from restow.cluster.groups.consumer.topics import TopicDirectory
from restow.cluster.groups.coordinator import GroupCoordinator
from restow.cluster.groups.journal import TransactionalProducer
from restow.cluster.groups.requests import (
    CommitRequest,
    FetchedOffsets,
    GroupDescription,
    JoinReply,
    JoinRequest,
    LeavingMember,
    OffsetToCommit,
    SyncReply,
    SyncRequest,
)
from restow.cluster.groups.states import GroupState
from restow.model.group_partitions import partition_of_group

__all__ = [
    "CommitRequest",
    "ConsumerGroupDescription",
    "ConsumerGroupMember",
    "FetchedOffsets",
    "GroupConfig",
    "GroupCoordinator",
    "GroupDescription",
    "GroupState",
    "HeartbeatReply",
    "HeartbeatRequest",
    "JoinReply",
    "JoinRequest",
    "LeavingMember",
    "OffsetToCommit",
    "SyncReply",
    "SyncRequest",
    "TopicDirectory",
    "TransactionalProducer",
    "partition_of_group",
]
