"""The replicas that were deleted here: an older LeaderAndIsr that arrives late must not make them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.cluster.replication.requests import Assigned
    from restow.model import TopicPartition

NO_EPOCH, TOPIC_DELETED = -1, -2
"""What a StopReplica says instead of a leader epoch."""
MOST = 10_000
"""So many are remembered. A request is late by seconds, and a broker loses few replicas in that time."""


class DeletedReplicas:
    """By partition: the topic id, and the leader epoch of the StopReplica that deleted the replica.

    When a reassignment brings a replica back, the controller raises the leader epoch first. A topic that is
    made anew has another id.
    """

    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[str, int]] = {}

    def add(self, topic_partition: TopicPartition, topic_id: str | None, leader_epoch: int) -> None:
        """Remember a deletion, if both are known: without an id, a new topic of the same name looks alike."""
        if topic_id is None or leader_epoch == NO_EPOCH:
            return
        self._last.pop(topic_partition, None)
        self._last[topic_partition] = topic_id, leader_epoch
        if len(self._last) > MOST:
            del self._last[next(iter(self._last))]

    def is_late(self, each: Assigned) -> bool:
        """Return whether this order was sent before the replica was deleted."""
        topic_id, leader_epoch = self._last.get(each.topic_partition, (None, NO_EPOCH))
        if topic_id is None or topic_id != each.topic_id:
            return False
        return leader_epoch == TOPIC_DELETED or each.order.leader_epoch <= leader_epoch
