"""What the store of a simulated cluster says about brokers and partitions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from restow.cluster.store.errors import NoNode
from restow.cluster.store.znodes import ControllerZNode, PartitionStateZNode, TopicZNode
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.cluster.store.tree import Tree

NOBODY = -1


def controller_of(tree: Tree) -> int:
    """Return the id of the controller, or -1."""
    node = tree.find(ControllerZNode.PATH)
    return NOBODY if node is None else ControllerZNode.decode(node.data).broker_id


def topics_in(tree: Tree) -> Iterator[tuple[str, TopicZNode]]:
    """Yield all topics by name."""
    try:
        names = tree.children(TopicZNode.PARENT)
    except NoNode:
        return
    for name in names:
        path = TopicZNode.path(name)
        yield name, _topic(tree.get(path).data, path)


@lru_cache(maxsize=256)
def _topic(data: bytes, path: str) -> TopicZNode:
    """Decode a topic; checkers look at the same one again and again."""
    return TopicZNode.decode(data, path)


def state_of(tree: Tree, partition: TopicPartition) -> PartitionStateZNode | None:
    """Return a partition's leader and ISR, if it has been created."""
    path = PartitionStateZNode.path(*partition)
    node = tree.find(path)
    return None if node is None else _state(node.data, path)


@lru_cache(maxsize=1024)
def _state(data: bytes, path: str) -> PartitionStateZNode:
    return PartitionStateZNode.decode(data, path)


def isr_members(tree: Tree, broker: int) -> dict[TopicPartition, int]:
    """Return the leader epochs of the partitions that have this broker in their ISR."""
    found = {}
    for topic, node in topics_in(tree):
        for number in node.partitions:
            partition = TopicPartition(topic, number)
            state = state_of(tree, partition)
            if state is not None and broker in state.isr:
                found[partition] = state.leader_epoch
    return found


def has_lone_isr(tree: Tree, broker: int) -> bool:
    """Return whether some partition has this broker alone in its ISR."""
    for partition in isr_members(tree, broker):
        state = state_of(tree, partition)
        if state is not None and state.isr == (broker,):
            return True
    return False
