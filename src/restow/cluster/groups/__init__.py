"""Consumer groups of the classic protocol: members, leaders and committed offsets.

`GroupCoordinator` is the entry point. `ClassicGroup` decides what an event means, `RunningGroup` carries it
out, and an `OffsetsJournal` stores it.
"""

from __future__ import annotations

from restow.cluster.groups.config import GroupConfig
from restow.cluster.groups.coordinator import GroupCoordinator
from restow.cluster.groups.journal import OffsetsJournal
from restow.cluster.groups.partitions import partition_of_group
from restow.cluster.groups.requests import (
    CommitRequest,
    DeleteOffsetsReply,
    DescribedMember,
    FetchedOffsets,
    GroupDescription,
    GroupListing,
    JoinedMember,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    ListReply,
    OffsetToCommit,
    SyncReply,
    SyncRequest,
)
from restow.cluster.groups.states import GroupState

__all__ = [
    "CommitRequest",
    "DeleteOffsetsReply",
    "DescribedMember",
    "FetchedOffsets",
    "GroupConfig",
    "GroupCoordinator",
    "GroupDescription",
    "GroupListing",
    "GroupState",
    "JoinReply",
    "JoinRequest",
    "JoinedMember",
    "LeaveReply",
    "LeavingMember",
    "ListReply",
    "OffsetToCommit",
    "OffsetsJournal",
    "SyncReply",
    "SyncRequest",
    "partition_of_group",
]
