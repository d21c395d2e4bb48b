"""Objects that the parts of one term share. Made at the election, dropped at the term's end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.cluster.controller.batch import BrokerRequestBatch
from restow.cluster.controller.partition_states import PartitionStates
from restow.cluster.controller.replica_states import ReplicaStates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.controller.config import ControllerConfig
    from restow.cluster.controller.context import ControllerContext
    from restow.cluster.controller.guarded import GuardedStore
    from restow.cluster.controller.outbox import Outbox
    from restow.cluster.controller.state_nodes import StateNodes
    from restow.cluster.controller.steps import Hook
    from restow.model import TopicPartition


@dataclass(slots=True, kw_only=True)
class Tools:
    """One set per term, so that all parts see the same context and write under the same epoch."""

    context: ControllerContext
    store: GuardedStore
    nodes: StateNodes
    outbox: Outbox
    config: ControllerConfig
    at: Hook
    new_topic_id: Callable[[], str]
    partitions: PartitionStates = field(init=False)
    replicas: ReplicaStates = field(init=False)

    def __post_init__(self) -> None:
        self.partitions = PartitionStates(self)
        self.replicas = ReplicaStates(self)

    def batch(self) -> BrokerRequestBatch:
        """Return an empty batch of requests to brokers."""
        return BrokerRequestBatch(self.context, self.outbox)

    def send_metadata(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Send every live broker the metadata of these partitions, and in any case the live brokers."""
        batch = self.batch()
        batch.update_metadata(partitions)
        batch.send()
