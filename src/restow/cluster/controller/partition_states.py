"""Partition state changes, with the elections that bring a partition Online.

    New          known from the topic's node; nothing is written
    Online       has a leader: from New the first state is written, otherwise a leader is elected
    Offline      its leader is gone
    NonExistent  deleted

`states.py` has the diagram and the table. A partition without an electable replica keeps its state.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.controller import elections
from restow.cluster.controller.elections import Election
from restow.cluster.controller.states import PARTITION_ORIGINS, PartitionState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.store.znodes import EntityConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from restow.cluster.controller.batch import BrokerRequestBatch
    from restow.cluster.controller.context import Leadership
    from restow.cluster.controller.elections import Choice
    from restow.cluster.controller.tools import Tools
    from restow.model import TopicPartition

_UNCLEAN = "unclean.leader.election.enable"
_log = logging.getLogger(__name__)


class PartitionStates:
    """Moves partitions from state to state."""

    def __init__(self, tools: Tools) -> None:
        self._context = tools.context
        self._tools = tools

    async def start(self) -> None:
        """Set each partition's state by its znode and the live brokers, then elect missing leaders."""
        context = self._context
        for partition in context.assignments:
            leadership = context.leaderships.get(partition)
            if leadership is None:
                state = PartitionState.NEW
            elif leadership.leader in context.online(partition, or_leaving=True):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            context.partition_states[partition] = state
        await self.elect_missing()

    async def elect_missing(self) -> None:
        """Try to bring every New and Offline partition Online, except in topics that are being deleted."""
        waiting = self._context.partition_states.among(PartitionState.NEW, PartitionState.OFFLINE)
        await self.move(
            [each for each in waiting if not self._context.is_deleting(each)], PartitionState.ONLINE
        )

    async def move(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        election: Election = Election.OFFLINE,
    ) -> set[TopicPartition]:
        """Return the partitions that reached the target state."""
        able = self._context.partition_states.legal(partitions, target, PARTITION_ORIGINS)
        if not able:
            return set()
        if target is not PartitionState.ONLINE:
            arrived: Iterable[TopicPartition] = able
        else:
            batch = self._tools.batch()
            states = self._context.partition_states
            new = [each for each in able if states[each] is PartitionState.NEW]
            old = [each for each in able if states[each] is not PartitionState.NEW]
            arrived = [*await self._begin(new, batch), *await self._elect(old, election, batch)]
            await self._tools.at(ControllerStep.W1)
            batch.send()
        for partition in arrived:
            self._context.partition_states[partition] = target
        return set(arrived)

    async def _begin(
        self, partitions: Collection[TopicPartition], batch: BrokerRequestBatch
    ) -> Iterable[TopicPartition]:
        """Write the first leaders of new partitions, in one call."""
        choices = {}
        for partition in partitions:
            replicas = self._context.assignments[partition].replicas
            choice = elections.for_new(replicas, self._context.online(partition))
            if choice is None:
                _log.warning("%s has no live replica among %s: it stays New", partition, replicas)
            else:
                choices[partition] = choice
        created = await self._tools.nodes.create(choices) if choices else {}
        for partition, leadership in created.items():
            self._context.leaderships[partition] = leadership
            batch.leader_and_isr(leadership.isr, partition, leadership, is_new=True)
        return created

    async def _elect(
        self, partitions: Collection[TopicPartition], election: Election, batch: BrokerRequestBatch
    ) -> Iterable[TopicPartition]:
        """Elect new leaders. Repeat for partitions whose state another writer changed meanwhile."""
        elected: dict[TopicPartition, Leadership] = {}
        while partitions:
            found = await self._tools.nodes.read(partitions)
            self._context.leaderships.update(found)
            unclean = await self._unclean_topics(found, election)
            changes = {}
            for partition, leadership in found.items():
                choice = self._choose(partition, leadership, election, unclean=partition.topic in unclean)
                if choice is None:
                    _log.warning(
                        "%s: no replica is electable (%s); ISR %s", partition, election.value, leadership.isr
                    )
                else:
                    changes[partition] = (leadership, choice)
            written, partitions = await self._tools.nodes.update(changes) if changes else ({}, ())
            elected |= written
        for partition, leadership in elected.items():
            self._context.leaderships[partition] = leadership
            told = self._context.online(partition, or_leaving=True)
            batch.leader_and_isr(sorted(told), partition, leadership)
        return elected

    def _choose(
        self, partition: TopicPartition, leadership: Leadership, election: Election, *, unclean: bool
    ) -> Choice | None:
        context = self._context
        assignment = context.assignments[partition]
        live = context.online(partition)
        match election:
            case Election.OFFLINE | Election.UNCLEAN:
                return elections.for_offline(assignment.replicas, leadership.isr, live, unclean=unclean)
            case Election.REASSIGNMENT:
                target = tuple(each for each in assignment.replicas if each not in assignment.removing)
                return elections.for_reassignment(target, leadership.isr, live)
            case Election.PREFERRED:
                return elections.for_preferred(assignment.replicas, leadership.isr, live)
            case Election.CONTROLLED_SHUTDOWN:
                either = context.online(partition, or_leaving=True)
                return elections.for_controlled_shutdown(
                    assignment.replicas, leadership.isr, either, context.shutting_down
                )

    async def _unclean_topics(self, found: dict[TopicPartition, Leadership], election: Election) -> set[str]:
        """Return the topics that allow unclean election. Configs are read only if the answer matters."""
        if election not in (Election.OFFLINE, Election.UNCLEAN):
            return set()
        topics = {
            partition.topic: None
            for partition, leadership in found.items()
            if self._context.online(partition).isdisjoint(leadership.isr)
        }
        if election is Election.UNCLEAN:
            return set(topics)
        paths = [EntityConfig.topic_path(topic) for topic in topics]
        nodes = await self._tools.store.read.get_each(paths) if paths else ()
        allowed = set()
        for topic, path, node in zip(topics, paths, nodes, strict=True):
            said = EntityConfig.values_at(path, node).get(_UNCLEAN)
            if self._tools.config.unclean_leader_election if said is None else said.lower() == "true":
                allowed.add(topic)
        return allowed
