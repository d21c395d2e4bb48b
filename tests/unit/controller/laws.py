"""Safety rules of a controller, checked at every write and every state change.

A violation is recorded where it happens, because an exception would only make the controller resign; `check`
raises it in the test.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from restow.cluster.controller.states import PartitionState as PartitionStage
from restow.cluster.controller.states import ReplicaState, States
from restow.cluster.store import Create, Delete, Set
from restow.cluster.store.znodes import (
    BrokerRegistration,
    ControllerEpoch,
    ControllerZNode,
    PartitionStateZNode,
    TopicZNode,
)
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from enum import Enum

    import pytest

    from restow.cluster.store import Operation
    from restow.cluster.store.tree import Tree

STATE_PATH = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")

# Znodes that brokers write for themselves: controller election and registration.
OWN = (ControllerZNode.PATH, BrokerRegistration.PARENT)

# The tables of the specification: a state and its possible previous states.
REPLICAS = {
    "New": "NonExistent",
    "Online": "New, Online, Offline, DeletionIneligible",
    "Offline": "New, Online, Offline, DeletionIneligible",
    "DeletionStarted": "Offline",
    "DeletionSuccessful": "DeletionStarted",
    "DeletionIneligible": "Offline, DeletionStarted",
    "NonExistent": "DeletionSuccessful",
}
PARTITIONS = {
    "New": "NonExistent",
    "Online": "New, Online, Offline",
    "Offline": "New, Online, Offline",
    "NonExistent": "Offline",
}
# States that a new controller may set without a previous one.
FOUND = {
    ReplicaState: {"Online", "DeletionIneligible"},
    PartitionStage: {"New", "Online", "Offline"},
}


class Laws:
    """Checks every write to the store and every transition of both state machines."""

    def __init__(self, tree: Tree, outsider: int) -> None:
        """`outsider` is the session of clients, tools and leaders."""
        self._tree = tree
        self._outsider = outsider
        self.breaches: list[str] = []
        self.unclean: set[TopicPartition] = set()
        """Partitions that were allowed an unclean leader."""
        self.writes = 0
        self.transitions = 0

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Start to check."""
        transact = self._tree.transact
        patch.setattr(self._tree, "transact", lambda *args: self._transacted(transact, *args))
        become = States.__setitem__
        patch.setattr(States, "__setitem__", lambda states, *args: self._became(become, states, *args))

    def check(self) -> None:
        assert not self.breaches, "\n".join(self.breaches)

    # Transitions

    def _became(self, become: Callable[..., None], states: States[Any, Any], key: Any, to: Enum) -> None:
        self.transitions += 1
        table = REPLICAS if isinstance(to, ReplicaState) else PARTITIONS
        before = states[key].value
        found = before == "NonExistent" and to.value in FOUND[type(to)]
        if before not in table[to.value].split(", ") and not found:
            self.breaches.append(f"{key} went from {before} to {to.value}")
        become(states, key, to)

    # Writes

    def _transacted(self, transact: Callable[..., Any], operations: Sequence[Operation], session: int) -> Any:
        before = {each.path: self._state(each.path) for each in operations if isinstance(each, Set)}
        outcome = transact(operations, session)
        changes = [each for each in operations if isinstance(each, (Create, Set, Delete))]
        for each in changes:
            if match := STATE_PATH.fullmatch(each.path):
                if not isinstance(each, Delete):
                    partition = TopicPartition(match[1], int(match[2]))
                    self._written(partition, before.get(each.path), session)
            elif not each.path.startswith(OWN):
                self._only_in_office(each, session)
        return outcome

    def _state(self, path: str) -> PartitionStateZNode | None:
        if not STATE_PATH.fullmatch(path) or (node := self._tree.find(path)) is None:
            return None
        return PartitionStateZNode.decode(node.data, path)

    def _only_in_office(self, change: Create | Set | Delete, session: int) -> None:
        """Check that only the current controller changes persistent znodes."""
        office = self._tree.find(ControllerZNode.PATH)
        if session == self._outsider or office is None:
            return
        if office.stat.ephemeral_owner != session:
            self.breaches.append(f"{change} was written by one who is not the controller")

    def _written(self, partition: TopicPartition, before: PartitionStateZNode | None, session: int) -> None:
        self.writes += 1
        after = self._state(PartitionStateZNode.path(*partition))
        assert after is not None
        for law, kept in (
            ("an ISR is not empty and names nobody twice", 0 < len(set(after.isr)) == len(after.isr)),
            ("a leader is in its ISR", after.leader in (-1, *after.isr)),
            ("an ISR is among the replicas", set(after.isr) <= self._replicas(partition)),
            *self._between(partition, before, after, by_leader=session == self._outsider),
        ):
            if not kept:
                self.breaches.append(f"{law}: {partition} was {before} and is {after}")

    def _between(
        self,
        partition: TopicPartition,
        before: PartitionStateZNode | None,
        after: PartitionStateZNode,
        *,
        by_leader: bool,
    ) -> list[tuple[str, bool]]:
        if by_leader:
            return []
        current = ControllerEpoch.decode(self._tree.get(ControllerEpoch.PATH).data).epoch
        laws = [("only the latest controller writes", after.controller_epoch == current)]
        if before is None:
            return [*laws, ("a first leader epoch is 0", after.leader_epoch == 0)]
        dirty = partition in self.unclean
        return [
            *laws,
            ("a controller raises the leader epoch by one", after.leader_epoch == before.leader_epoch + 1),
            ("a leader was in sync", after.leader in (-1, before.leader, *before.isr) or dirty),
            ("a controller takes nobody into an ISR", set(after.isr) <= set(before.isr) or dirty),
        ]

    def _replicas(self, partition: TopicPartition) -> set[int]:
        node = self._tree.get(TopicZNode.path(partition.topic))
        return set(TopicZNode.decode(node.data, partition.topic).partitions[partition.partition].replicas)
