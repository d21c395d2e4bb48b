"""Consumer groups of the classic protocol: members, leaders and committed offsets.

`GroupCoordinator` is the entry point. `ClassicGroup` decides what an event means, `RunningGroup` carries it
out, and an `OffsetsJournal` stores it.
"""

from restow.cluster.groups.config import GroupConfig
from restow.cluster.groups.coordinator import GroupCoordinator
from restow.cluster.groups.partitions import partition_of_group
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

__all__ = [
    "CommitRequest",
    "FetchedOffsets",
    "GroupConfig",
    "GroupCoordinator",
    "GroupDescription",
    "GroupState",
    "JoinReply",
    "JoinRequest",
    "LeavingMember",
    "OffsetToCommit",
    "SyncReply",
    "SyncRequest",
    "partition_of_group",
]
