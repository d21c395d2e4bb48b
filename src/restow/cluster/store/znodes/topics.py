"""Topics' assignments and partitions' states."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from restow._frozen import frozen
from restow.cluster.store.errors import UnreadableNode
from restow.cluster.store.znodes.documents import Document, render
from restow.model import ReplicaAssignment

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


@frozen
class TopicZNode:
    """`/brokers/topics/<topic>`. Versions 1 (no reassignments) and 2 (no id) are read, 3 is written."""

    PARENT: ClassVar = "/brokers/topics"

    topic_id: str | None
    """22 characters of base64; None if the node was written before topics had ids."""
    partitions: Mapping[int, ReplicaAssignment]
    """In the order of the node."""

    @classmethod
    def path(cls, topic: str) -> str:
        return f"{cls.PARENT}/{topic}"

    def encode(self) -> bytes:
        fields: dict[str, object] = {"partitions": {p: each.replicas for p, each in self.partitions.items()}}
        if self.topic_id is not None:
            fields["topic_id"] = self.topic_id
        fields["adding_replicas"] = {p: each.adding for p, each in self.partitions.items() if each.adding}
        fields["removing_replicas"] = {
            p: each.removing for p, each in self.partitions.items() if each.removing
        }
        fields["version"] = 3
        return render(fields)

    @classmethod
    def decode(cls, data: bytes, path: str) -> TopicZNode:
        found = Document.parse(path, data, versions=(1, 2, 3))
        topic_id = found.text("topic_id") if found.version >= 3 and found.has("topic_id") else None
        if topic_id is not None and not _TOPIC_ID.fullmatch(topic_id):
            raise UnreadableNode(path, f"{topic_id!r} is not the id of a topic")
        replicas = found.document("partitions")
        adding = _by_partition(found, "adding_replicas")
        removing = _by_partition(found, "removing_replicas")
        partitions = {
            number: ReplicaAssignment(
                replicas.integers(key), adding.get(number, ()), removing.get(number, ())
            )
            for key, number in zip(replicas.names(), replicas.partition_numbers(), strict=True)
        }
        return cls(topic_id=topic_id, partitions=partitions)


def _by_partition(found: Document, key: str) -> dict[int, tuple[int, ...]]:
    if found.version < 2 or not found.has(key):
        return {}
    entries = found.document(key)
    return dict(zip(entries.partition_numbers(), map(entries.integers, entries.names()), strict=True))


@frozen
class PartitionStateZNode:
    """`/brokers/topics/<topic>/partitions/<partition>/state`. Its version is the partition epoch."""

    leader: int
    """-1 while the partition is offline."""
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    leader_recovery_state: int = 0
    """1 while an uncleanly elected leader has not finished its recovery."""

    @staticmethod
    def parents(topic: str, partition: int) -> tuple[str, str]:
        """Return the nodes between the topic's and the state's, outer one first."""
        partitions = f"{TopicZNode.path(topic)}/partitions"
        return partitions, f"{partitions}/{partition}"

    @classmethod
    def path(cls, topic: str, partition: int) -> str:
        return f"{TopicZNode.path(topic)}/partitions/{partition}/state"

    def encode(self) -> bytes:
        fields: dict[str, object] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
        }
        if self.leader_recovery_state:
            fields["leader_recovery_state"] = self.leader_recovery_state
        fields |= {"leader_epoch": self.leader_epoch, "isr": self.isr}
        return render(fields)

    @classmethod
    def decode(cls, data: bytes, path: str) -> PartitionStateZNode:
        found = Document.parse(path, data, versions=(1,))
        recovery = "leader_recovery_state"
        return cls(
            leader=found.integer("leader"),
            leader_epoch=found.integer("leader_epoch"),
            isr=found.integers("isr"),
            controller_epoch=found.integer("controller_epoch"),
            leader_recovery_state=found.integer(recovery) if found.has(recovery) else 0,
        )
