"""Choose the replica that a consumer shall read from (KIP-392): one in its rack, if there is one in sync."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.wire.fetch import Fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.cluster.replication.partition import HostedPartition

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@dataclass(frozen=True, slots=True)
class ReplicaSelector:
    """Chooses the replica to read from, if consumers shall read within their racks."""

    by_rack: bool
    racks: Callable[[], Mapping[int, str | None]]
    """Returns the racks of the live brokers."""

    def __call__(self, partition: HostedPartition, rack: str, offset: int) -> int | None:
        return follower_in_rack(partition, rack, offset, self.racks()) if self.by_rack else None


def follower_in_rack(
    partition: HostedPartition, rack: str, offset: int, racks: Mapping[int, str | None]
) -> int | None:
    """Return the follower in that rack to read from at the offset; None if the leader shall be read from.

    The leader is, if it is in the rack itself. Otherwise it is the follower in sync that has come farthest.
    """
    leader = partition.order.leader
    if not partition.is_leader or racks.get(leader) == rack:
        return None
    near = [
        (progress.end_offset, progress.caught_up_s, follower)
        for follower, progress in partition.followers.items()
        if follower in partition.isr
        and racks.get(follower) == rack
        and progress.start_offset <= offset <= progress.end_offset
    ]
    return max(near)[2] if near else None


def sent_to(partition: HostedPartition, replica: int) -> Fetched:
    """Return the answer that sends a consumer to another replica."""
    log = partition.log
    number = partition.topic_partition.partition
    return Fetched(
        number, 0, log.high_watermark, log.last_stable_offset, log.start_offset, preferred_replica=replica
    )
