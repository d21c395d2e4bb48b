"""Topic deletion. It waits for every replica and survives every failure.

    D1  UpdateMetadata tells all brokers that the topic's partitions have no leader
    D2  replicas on live brokers Offline: stopped, nothing deleted; those on dead ones DeletionIneligible
    D3  replicas on live brokers DeletionStarted: StopReplica with delete
    D4  all replicas answered, DeletionSuccessful
    D5  the partitions' znodes deleted
    D6  the topic's znode, its config and the delete request removed together

A topic with an ongoing reassignment is blocked until the reassignment ends. With a replica on a dead broker,
deletion starts, so that clients no longer see the topic and live brokers free their disks. It is then blocked
until the broker is back; replicas deleted so far stay deleted. The delete request stays in the store until
D6, so the next controller continues it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart
from restow.cluster.store import Delete, NoNode, StoreError
from restow.cluster.store.znodes import DeleteTopic, EntityConfig, TopicZNode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from restow.cluster.controller.context import Replica

_R = ReplicaState
_log = logging.getLogger(__name__)


class Next(Enum):
    """The next action for a topic that is being deleted."""

    FINISH = "all replicas are gone: delete its nodes"
    WAIT = "replicas are being deleted, or it is blocked"
    BEGIN = "stop and delete the replicas that are left"


def next_for(states: Collection[ReplicaState], *, blocked: bool) -> Next:
    """Decide by the states of all replicas of the topic."""
    if all(state is _R.DELETION_SUCCESSFUL for state in states):
        return Next.FINISH
    if blocked or _R.DELETION_STARTED in states:
        return Next.WAIT
    return Next.BEGIN


class Deletion(TermPart):
    """Carries every deletion on as far as it can."""

    async def start(self) -> None:
        """Read a new controller's delete requests before states are computed; `resume` continues them."""
        for topic in await self._requested():
            self._queue(topic)
            replicas = self._context.replicas(self._context.partitions_of(topic))
            if not all(self._context.is_online(replica, or_leaving=True) for replica in replicas):
                self._context.blocked.add(topic)

    async def requested(self) -> None:
        """Handle new delete requests."""
        for topic in await self._requested():
            if topic not in self._context.deleting:
                self._queue(topic)
        await self.resume()

    async def _requested(self) -> list[str]:
        """Return the topics to delete. Requests that cannot be carried out are removed.

        The request for a topic that the controller has not seen yet stays, and is read again when the topic
        appears.
        """
        asked = await self._tools.store.read.children(DeleteTopic.PARENT)
        if self._tools.config.delete_topic:
            known = [topic for topic in asked if topic in self._context.topic_ids]
            others = [topic for topic in asked if topic not in self._context.topic_ids]
            nodes = await self._tools.store.read.get_each([TopicZNode.path(topic) for topic in others])
            refused = [topic for topic, node in zip(others, nodes, strict=True) if node is None]
        else:
            known, refused = [], list(asked)
        if refused:
            _log.warning("not deleted, unknown topics or delete.topic.enable is false: %s", refused)
            await self._tools.store.multi_each([(Delete(DeleteTopic.path(topic)),) for topic in refused])
        return known

    def _queue(self, topic: str) -> None:
        context = self._context
        context.deleting.add(topic)
        partitions = context.partitions_of(topic)
        if any(map(context.is_moving, partitions)):
            context.blocked.add(topic)
        _log.info("topic %s is queued for deletion%s", topic, ", blocked" if topic in context.blocked else "")

    async def resume_for(self, topics: Iterable[str]) -> None:
        """Continue these topics' deletions, because the obstacle may be gone."""
        context = self._context
        for topic in sorted(context.blocked.intersection(topics)):
            if not any(map(context.is_moving, context.partitions_of(topic))):
                context.blocked.discard(topic)
        await self.resume()

    async def resume(self) -> None:
        """Carry every deletion on as far as it can."""
        for topic in sorted(self._context.deleting):
            states = [self._context.replica_states[replica] for replica in self._replicas_of(topic)]
            match next_for(states, blocked=topic in self._context.blocked):
                case Next.BEGIN:
                    await self._begin(topic)
                case Next.FINISH:
                    await self._finish(topic)
                case Next.WAIT:
                    pass

    async def failed(self, replicas: Sequence[Replica]) -> None:
        """Mark these replicas as ineligible for deletion for now."""
        able = [
            each
            for each in replicas
            if self._context.is_deleting(each.partition)
            and self._context.replica_states[each] not in (_R.DELETION_SUCCESSFUL, _R.NON_EXISTENT)
        ]
        if not able:
            return
        for replica in able:
            self._context.blocked.add(replica.partition.topic)
        states = self._context.replica_states
        running = [each for each in able if states[each] in (_R.NEW, _R.ONLINE, _R.DELETION_INELIGIBLE)]
        await self._replicas.move(running, _R.OFFLINE)
        await self._replicas.move(able, _R.DELETION_INELIGIBLE)
        await self.resume()

    async def succeeded(self, replicas: Iterable[Replica]) -> None:
        """Handle replicas that brokers have deleted."""
        states = self._context.replica_states
        await self._replicas.move(
            [each for each in replicas if states[each] is _R.DELETION_STARTED], _R.DELETION_SUCCESSFUL
        )
        await self.resume()

    def _replicas_of(self, topic: str) -> list[Replica]:
        return list(self._context.replicas(self._context.partitions_of(topic)))

    async def _begin(self, topic: str) -> None:
        """Run steps D1 to D3."""
        context = self._context
        partitions = context.partitions_of(topic)
        self._tools.send_metadata(partitions)
        existing = [p for p in partitions if context.partition_states[p] is not PartitionState.NON_EXISTENT]
        await self._partitions.move(existing, PartitionState.OFFLINE)
        await self._partitions.move(existing, PartitionState.NON_EXISTENT)
        await self._tools.at(ControllerStep.D1)
        left = [
            each
            for each in self._replicas_of(topic)
            if context.replica_states[each] not in (_R.DELETION_SUCCESSFUL, _R.NON_EXISTENT)
        ]
        alive = [each for each in left if context.is_online(each, or_leaving=True)]
        dead = [each for each in left if not context.is_online(each, or_leaving=True)]
        await self._replicas.move(left, _R.OFFLINE)
        await self._replicas.move(dead, _R.DELETION_INELIGIBLE)
        if dead:
            context.blocked.add(topic)
        await self._tools.at(ControllerStep.D2)
        await self._replicas.move(alive, _R.DELETION_STARTED)
        await self._tools.at(ControllerStep.D3)

    async def _finish(self, topic: str) -> None:
        """Run steps D4 to D6."""
        _log.info("every replica of topic %s is gone", topic)
        await self._tools.at(ControllerStep.D4)
        await self._replicas.move(self._replicas_of(topic), _R.NON_EXISTENT)
        read = self._tools.store.read
        parent = f"{TopicZNode.path(topic)}/partitions"
        with suppress(NoNode):
            numbers = await read.children(parent)
            await self._delete_all([f"{parent}/{number}/state" for number in numbers])
            await self._delete_all([f"{parent}/{number}" for number in numbers])
        await self._tools.at(ControllerStep.D5)
        last = (parent, TopicZNode.path(topic), EntityConfig.topic_path(topic), DeleteTopic.path(topic))
        there = zip(last, await read.get_each(last), strict=True)
        await self._tools.store.multi([Delete(path) for path, node in there if node is not None])
        self._context.forget_topic(topic)
        await self._tools.at(ControllerStep.D6)
        _log.info("topic %s is deleted", topic)

    async def _delete_all(self, paths: Sequence[str]) -> None:
        for answer in await self._tools.store.multi_each([(Delete(path),) for path in paths]):
            if isinstance(answer, StoreError) and not isinstance(answer, NoNode):
                raise answer
