"""Brokers that register, disappear, or lose a log dir."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.controller.context import RegisteredBroker, Replica
from restow.cluster.controller.guarded import readable
from restow.cluster.controller.notifications import read_notifications, remove_notifications
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart, Tools
from restow.cluster.store.znodes import BrokerRegistration, LogDirEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.cluster.controller.deletion import Deletion
    from restow.cluster.controller.reassignment.reassignment import Reassignment
    from restow.model import TopicPartition

_log = logging.getLogger(__name__)


class Changes(NamedTuple):
    """The brokers that are gone and those that are new. A broker that restarted unnoticed is in both."""

    gone: tuple[int, ...]
    new: tuple[int, ...]


def compare(known: Mapping[int, RegisteredBroker], seen: Mapping[int, RegisteredBroker]) -> Changes:
    """Return the difference between the known and the registered brokers."""
    bounced = {each for each in known.keys() & seen.keys() if known[each].epoch != seen[each].epoch}
    return Changes(
        tuple(sorted(known.keys() - seen.keys() | bounced)),
        tuple(sorted(seen.keys() - known.keys() | bounced)),
    )


async def read_brokers(tools: Tools) -> dict[int, RegisteredBroker]:
    """Return the registered brokers with their broker epochs."""
    read = tools.store.read
    ids = sorted(int(each) for each in await read.children(BrokerRegistration.PARENT) if each.isdecimal())
    paths = [BrokerRegistration.path(broker_id) for broker_id in ids]
    found = {}
    for broker_id, path, node in zip(ids, paths, await read.get_each(paths), strict=True):
        registration = readable(BrokerRegistration.decode, node, path)
        if node is not None and registration is not None:
            found[broker_id] = RegisteredBroker(broker_id, node.stat.czxid, registration)
    return found


class Brokers(TermPart):
    """Handles every change of the live brokers."""

    def __init__(self, tools: Tools, deletion: Deletion, reassignment: Reassignment) -> None:
        super().__init__(tools)
        self._deletion = deletion
        self._reassignment = reassignment

    def start(self, brokers: Mapping[int, RegisteredBroker]) -> None:
        """Take over the brokers that a new controller finds."""
        self._context.brokers.update(brokers)
        for broker_id in brokers:
            self._tools.outbox.open(broker_id)

    async def changed(self) -> None:
        """Compare the registered brokers with the known ones and handle the difference."""
        seen = await read_brokers(self._tools)
        changes = compare(self._context.brokers, seen)
        if changes.gone:
            await self._left(changes.gone)
        self._context.brokers.update({each: seen[each] for each in seen if each not in changes.new})
        if changes.new:
            await self._came({broker_id: seen[broker_id] for broker_id in changes.new})

    async def _left(self, brokers: Collection[int]) -> None:
        _log.info("brokers gone: %s", list(brokers))
        for broker_id in brokers:
            del self._context.brokers[broker_id]
            self._context.shutting_down.discard(broker_id)
            self._context.failed.pop(broker_id, None)
            self._tools.outbox.close(broker_id)
        await self._lost(self._context.replicas_on(brokers))

    async def _came(self, brokers: Mapping[int, RegisteredBroker]) -> None:
        """Send new brokers all metadata, then the replicas they serve; tell the others that they are up.

        Metadata goes first: a broker that knew only the live brokers would answer that no topic exists.
        """
        _log.info("new brokers: %s", list(brokers))
        self.start(brokers)
        batch = self._tools.batch()
        batch.send_everything(brokers)
        batch.update_metadata()
        batch.send()
        returned = self._context.replicas_on(brokers)
        await self._replicas.move([each for each in returned if self._may_serve(each)], ReplicaState.ONLINE)
        await self._partitions.elect_missing()
        await self._reassignment.resume_for(brokers)
        await self._deletion.resume_for(each.partition.topic for each in returned)

    def _may_serve(self, replica: Replica) -> bool:
        """Return whether to bring the replica online. A topic being deleted waits for its deletion."""
        partition = replica.partition
        return not self._context.is_deleting(partition) or self._context.is_moving(partition)

    async def _lost(self, replicas: Iterable[Replica]) -> None:
        """Elect leaders where one was lost, then take these replicas out of their ISRs."""
        context = self._context
        served: list[Replica] = []
        deleted: list[Replica] = []
        for replica in replicas:
            (deleted if context.is_deleting(replica.partition) else served).append(replica)
        touched = dict.fromkeys(replica.partition for replica in served)
        leaderless = [partition for partition in touched if self._is_leaderless(partition)]
        await self._partitions.move(leaderless, PartitionState.OFFLINE)
        await self._tools.at(ControllerStep.F1)
        await self._partitions.elect_missing()
        await self._tools.at(ControllerStep.F2)
        await self._replicas.move(served, ReplicaState.OFFLINE)
        await self._tools.at(ControllerStep.F3)
        await self._deletion.failed(deleted)
        self._tools.send_metadata()

    def _is_leaderless(self, partition: TopicPartition) -> bool:
        leadership = self._context.leaderships.get(partition)
        return leadership is not None and leadership.leader not in self._context.online(
            partition, or_leaving=True
        )

    # Log directories

    async def log_dirs_changed(self) -> None:
        """Ask the brokers that lost a log dir which replicas are gone: LeaderAndIsr responses say it."""
        notes, paths = await read_notifications(self._tools.store, LogDirEvent)
        brokers = {note.broker_id for note in notes} & self._context.brokers.keys()
        asked = [
            each
            for each in self._context.replicas_on(brokers)
            if self._may_serve(each) and self._context.is_online(each, or_leaving=True)
        ]
        await self._replicas.move(asked, ReplicaState.ONLINE)
        await remove_notifications(self._tools.store, paths)

    async def directories(
        self, broker_id: int, failed: Collection[TopicPartition], served: Collection[TopicPartition]
    ) -> None:
        """Record which replicas of a broker are in a failed log dir and which are online again."""
        known = self._context.failed[broker_id]
        new = [each for each in failed if each in self._context.assignments and each not in known]
        known.difference_update(served)
        known.update(new)
        if new:
            _log.warning("broker %d cannot use %d replicas: a log dir failed", broker_id, len(new))
            await self._lost([Replica(partition, broker_id) for partition in new])
