"""Replica state changes, with the requests that each one sends to brokers.

    New                 LeaderAndIsr to the broker, if the partition has a leader
    Online              LeaderAndIsr to the broker
    Offline             StopReplica to the broker; the ISR loses the replica, LeaderAndIsr to the others
    DeletionStarted     StopReplica with delete to the broker
    DeletionSuccessful  the broker has deleted the replica
    DeletionIneligible  not possible now: the broker is dead, or the log dir failed
    NonExistent         the controller has forgotten the replica

`states.py` has the diagram and the table.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from restow.cluster.controller import elections
from restow.cluster.controller.states import REPLICA_ORIGINS, ReplicaState
from restow.cluster.controller.steps import ControllerStep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.controller.batch import BrokerRequestBatch
    from restow.cluster.controller.context import Replica
    from restow.cluster.controller.tools import Tools
    from restow.model import TopicPartition

_log = logging.getLogger(__name__)


class ReplicaStates:
    """Moves replicas from state to state."""

    def __init__(self, tools: Tools) -> None:
        self._context = tools.context
        self._tools = tools

    async def start(self) -> None:
        """Set replicas on live brokers Online and send LeaderAndIsr; take the others out of their ISRs."""
        context = self._context
        online: list[Replica] = []
        offline: list[Replica] = []
        for replica in context.replicas(context.assignments):
            live = context.is_online(replica, or_leaving=True)
            context.replica_states[replica] = (
                ReplicaState.ONLINE if live else ReplicaState.DELETION_INELIGIBLE
            )
            (online if live else offline).append(replica)
        await self.move(online, ReplicaState.ONLINE)
        await self.move(offline, ReplicaState.OFFLINE)

    async def move(self, replicas: Iterable[Replica], target: ReplicaState) -> list[Replica]:
        """Return the replicas that reached the target state."""
        able = self._context.replica_states.legal(replicas, target, REPLICA_ORIGINS)
        if not able:
            return able
        batch = self._tools.batch()
        match target:
            case ReplicaState.NEW:
                able = self._follow_as_new(able, batch)
            case ReplicaState.ONLINE:
                self._serve(able, batch)
            case ReplicaState.OFFLINE:
                await self._withdraw(able, batch)
            case ReplicaState.DELETION_STARTED:
                for partition, broker_id in able:
                    batch.stop_replica((broker_id,), partition, delete=True)
            case _:
                pass
        batch.send()
        for replica in able:
            self._context.replica_states[replica] = target
        return able

    def _follow_as_new(self, replicas: list[Replica], batch: BrokerRequestBatch) -> list[Replica]:
        able = []
        for replica in replicas:
            leadership = self._context.leaderships.get(replica.partition)
            if leadership is not None and leadership.leader == replica.broker_id:
                _log.error("refused: %s leads already and cannot become New", replica)
                continue
            if leadership is not None:
                batch.leader_and_isr((replica.broker_id,), replica.partition, leadership, is_new=True)
            able.append(replica)
        return able

    def _serve(self, replicas: list[Replica], batch: BrokerRequestBatch) -> None:
        for replica in replicas:
            if self._context.replica_states[replica] is ReplicaState.NEW:
                continue
            leadership = self._context.leaderships.get(replica.partition)
            if leadership is not None:
                batch.leader_and_isr((replica.broker_id,), replica.partition, leadership)

    async def _withdraw(self, replicas: list[Replica], batch: BrokerRequestBatch) -> None:
        by_broker: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for partition, broker_id in replicas:
            batch.stop_replica((broker_id,), partition, delete=False)
            if partition in self._context.leaderships and self._counts(partition, broker_id):
                by_broker[broker_id].append(partition)
        for broker_id, partitions in by_broker.items():
            await self._leave_isr(broker_id, partitions, batch)
        if by_broker:
            await self._tools.at(ControllerStep.W1)

    def _counts(self, partition: TopicPartition, broker_id: int) -> bool:
        """Return whether the ISR must lose the replica. A topic being deleted keeps assigned ones."""
        context = self._context
        return not context.is_deleting(partition) or broker_id not in context.assignments[partition].replicas

    async def _leave_isr(
        self, broker_id: int, partitions: list[TopicPartition], batch: BrokerRequestBatch
    ) -> None:
        """Take the replica out of each ISR. Repeat where the leader wrote the state meanwhile."""
        context = self._context
        while partitions:
            found = await self._tools.nodes.read(partitions)
            context.leaderships.update(found)
            changes = {}
            for partition, leadership in found.items():
                choice = elections.without(broker_id, leadership.leader, leadership.isr)
                if choice != (leadership.leader, leadership.isr):
                    changes[partition] = (leadership, choice)
            batch.update_metadata(found)
            written, partitions = await self._tools.nodes.update(changes) if changes else ({}, [])
            for partition, leadership in written.items():
                context.leaderships[partition] = leadership
                others = [each for each in context.assignments[partition].replicas if each != broker_id]
                batch.leader_and_isr(others, partition, leadership)
