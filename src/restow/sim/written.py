"""What every single write to the store must keep. Each one is looked at, not only the last before a look.

the controller epoch     never goes back
a partition's state      its leader epoch never goes back; the ISR is not empty; the leader is in the ISR
a leader                 is taken away without a successor only if its broker or its log dir is gone. A
                         reassignment first elects a leader in the target (B3), then stops the removed
                         replicas (B4), and a cancelled one first takes the leadership from the added ones
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.store.operations import Create, Set
from restow.cluster.store.znodes import BrokerRegistration, ControllerEpoch, PartitionStateZNode, TopicZNode
from restow.model import TopicPartition
from restow.sim.states import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.cluster.store.operations import Operation
    from restow.sim.cluster import SimCluster

_STATE = re.compile(rf"{TopicZNode.PARENT}/(?P<topic>[^/]+)/partitions/(?P<partition>\d+)/state")


class _Known(NamedTuple):
    """A partition's state, and the transaction that wrote it."""

    state: PartitionStateZNode
    zxid: int


class WrittenStates:
    """Looks at the writes of all nodes."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster, self._tree = cluster, cluster.store.tree
        self._known: dict[str, _Known] = {}
        self._controller_epoch = 0
        self.broken: list[str] = []
        """What was wrong since somebody looked last."""
        cluster.store.on_write = self._written

    def _written(self, operations: Sequence[Operation]) -> None:
        for each in operations:
            if not isinstance(each, Create | Set):
                continue
            if each.path == ControllerEpoch.PATH:
                self.broken.extend(self._check_controller_epoch(each.data))
            elif found := _STATE.fullmatch(each.path):
                if isinstance(each, Create):
                    self._known.pop(each.path, None)
                partition = TopicPartition(found["topic"], int(found["partition"]))
                self.broken.extend(self._check_state(partition, each))

    def _check_controller_epoch(self, data: bytes) -> Iterator[str]:
        epoch = ControllerEpoch.decode(data).epoch
        if epoch < self._controller_epoch:
            yield f"the controller epoch went back from {self._controller_epoch} to {epoch}"
        self._controller_epoch = epoch

    def _check_state(self, partition: TopicPartition, write: Create | Set) -> Iterator[str]:
        before = self._known.get(write.path)
        state = PartitionStateZNode.decode(write.data, write.path)
        self._known[write.path] = _Known(state, self._tree.zxid)
        if not state.isr:
            yield f"{partition} has an empty ISR"
        elif state.leader not in (*state.isr, NOBODY):
            yield f"{partition}: leader {state.leader} is not in its ISR {state.isr}"
        if before is None:
            return
        epoch, leader = before.state.leader_epoch, before.state.leader
        if state.leader_epoch < epoch:
            yield f"the leader epoch of {partition} went back from {epoch} to {state.leader_epoch}"
        if state.leader == NOBODY != leader and self._is_well(leader, before.zxid):
            yield f"{partition} lost its leader {leader}, which is alive, and got no other: {state}"

    def _is_well(self, broker: int, since_zxid: int) -> bool:
        """Return whether a broker has been registered since that transaction, with all its log dirs."""
        registration = self._tree.find(BrokerRegistration.path(broker))
        node = self._cluster.nodes[broker]
        return (
            registration is not None
            and registration.stat.czxid < since_zxid
            and node.broker.is_running
            and not node.broker.services.logs.offline
        )
