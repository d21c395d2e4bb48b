"""Objects that the parts of one term share, and the controller's settings.

A set of objects is made at the election and dropped at the term's end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.controller.batch import BrokerRequestBatch
from restow.cluster.controller.partition_states import PartitionStates
from restow.cluster.controller.replica_states import ReplicaStates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.controller.context import ControllerContext
    from restow.cluster.controller.guarded import GuardedStore
    from restow.cluster.controller.outbox import Outbox
    from restow.cluster.controller.state_nodes import StateNodes
    from restow.cluster.controller.steps import Hook
    from restow.model import TopicPartition


@frozen
class ControllerConfig:
    """Defaults are Kafka's, except that automatic leader rebalancing is off."""

    unclean_leader_election: bool = False
    """`unclean.leader.election.enable` for topics that do not override it."""
    delete_topic: bool = True
    """`delete.topic.enable`: without it, the controller drops delete requests."""
    auto_leader_rebalance: bool = False
    rebalance_interval_s: float = 300.0
    rebalance_percentage: int = 10
    """Percentage of a broker's preferred partitions that other brokers may lead before an election."""
    retry_backoff_s: float = 0.1
    """Pause between two attempts to reach a broker, or to be elected after a failure."""


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


class TermPart:
    """A part of a term, with short names for what it uses most."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._context = tools.context
        self._partitions = tools.partitions
        self._replicas = tools.replicas
