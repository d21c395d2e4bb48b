"""What the store says of topics and configs, read at once: for checks that run several times per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.store.errors import NoNode
from restow.cluster.store.znodes import DeleteTopic, EntityConfig, TopicZNode
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.store.tree import Tree
    from restow.model import ReplicaAssignment


class StoredTruth:
    """Assignments and configs as the store has them now. Nodes that have not changed are not read again."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._topics: dict[str, tuple[int, TopicZNode]] = {}

    def topics(self) -> dict[str, TopicZNode]:
        """Return the topics by name."""
        found = {}
        for name in self._children(TopicZNode.PARENT):
            path = TopicZNode.path(name)
            node = self._tree.get(path)
            known = self._topics.get(name)
            if known is None or known[0] != node.stat.mzxid:
                known = self._topics[name] = node.stat.mzxid, TopicZNode.decode(node.data, path)
            found[name] = known[1]
        return found

    def assignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        """Return the replicas of every partition."""
        return {
            TopicPartition(name, number): assignment
            for name, topic in self.topics().items()
            for number, assignment in topic.partitions.items()
        }

    def configs(self) -> dict[tuple[str, str], Mapping[str, str]]:
        """Return the dynamic configs that are set, by "topic" or "broker" and its name."""
        found = {}
        for of, parent in (("topic", EntityConfig.TOPICS), ("broker", EntityConfig.BROKERS)):
            for name in self._children(parent):
                path = f"{parent}/{name}"
                found[of, name] = EntityConfig.decode(self._tree.get(path).data, path).values
        return found

    def deleting(self) -> tuple[str, ...]:
        """Return the topics that wait for their deletion. No client can reach them or their configs."""
        return self._children(DeleteTopic.PARENT)

    def _children(self, path: str) -> tuple[str, ...]:
        try:
            return self._tree.children(path)
        except NoNode:
            return ()
