"""Brokers that come, go, or lose a log directory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.controller.batch import BrokerRequestBatch
from restow.cluster.controller.context import RegisteredBroker, Replica
from restow.cluster.controller.notes import read_notes, remove_notes
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.store import UnreadableNode
from restow.cluster.store.znodes import BrokerRegistration, LogDirEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.cluster.controller.deletion import Deletion
    from restow.cluster.controller.partition_states import PartitionStates
    from restow.cluster.controller.reassignment.reassignment import Reassignment
    from restow.cluster.controller.replica_states import ReplicaStates
    from restow.cluster.controller.tools import Tools
    from restow.model import TopicPartition

_log = logging.getLogger(__name__)


class Changes(NamedTuple):
    """Who is gone and who is new. A broker that came back before it was missed is both."""

    gone: tuple[int, ...]
    new: tuple[int, ...]


def compare(known: Mapping[int, RegisteredBroker], seen: Mapping[int, RegisteredBroker]) -> Changes:
    """What happened to the brokers between the two."""
    bounced = {each for each in known.keys() & seen.keys() if known[each].epoch != seen[each].epoch}
    return Changes(
        tuple(sorted(known.keys() - seen.keys() | bounced)),
        tuple(sorted(seen.keys() - known.keys() | bounced)),
    )


async def read_brokers(tools: Tools) -> dict[int, RegisteredBroker]:
    """The brokers that are registered, with the epochs of their registrations."""
    read = tools.store.read
    ids = sorted(int(each) for each in await read.children(BrokerRegistration.PARENT) if each.isdecimal())
    nodes = await read.get_each([BrokerRegistration.path(broker_id) for broker_id in ids])
    found = {}
    for broker_id, node in zip(ids, nodes, strict=True):
        if node is None:
            continue
        try:
            registration = BrokerRegistration.decode(node.data, BrokerRegistration.path(broker_id))
        except UnreadableNode as error:
            _log.error("skipped: %s", error)
            continue
        found[broker_id] = RegisteredBroker(broker_id, node.stat.czxid, registration)
    return found


class Brokers:
    """Deals with each change of who is there."""

    def __init__(
        self,
        tools: Tools,
        partitions: PartitionStates,
        replicas: ReplicaStates,
        deletion: Deletion,
        reassignment: Reassignment,
    ) -> None:
        self._tools = tools
        self._context = tools.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion
        self._reassignment = reassignment

    def start(self, brokers: Mapping[int, RegisteredBroker]) -> None:
        """The brokers a new controller finds."""
        self._context.brokers.update(brokers)
        for broker_id in brokers:
            self._tools.outbox.open(broker_id)

    async def changed(self) -> None:
        """Compare who is registered with who was."""
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
        """They hear of everything, then what they are to serve; others hear that they are there.

        Of everything first, and at once: a broker that knew only who is there would deny that topics are.
        """
        _log.info("new brokers: %s", list(brokers))
        self.start(brokers)
        batch = BrokerRequestBatch(self._context, self._tools.outbox)
        batch.send_everything(brokers)
        batch.update_metadata()
        batch.send()
        returned = self._context.replicas_on(brokers)
        await self._replicas.move([each for each in returned if self._may_serve(each)], ReplicaState.ONLINE)
        await self._partitions.elect_missing()
        await self._reassignment.resume_for(brokers)
        await self._deletion.resume_for(each.partition.topic for each in returned)

    def _may_serve(self, replica: Replica) -> bool:
        """A replica of a topic that is to go is brought back only by its deletion, or by a move before it."""
        partition = replica.partition
        return not self._context.is_deleting(partition) or self._context.is_moving(partition)

    async def _lost(self, replicas: Iterable[Replica]) -> None:
        """Leaders for those that lost theirs, then the replicas out of the ISRs."""
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
        batch = BrokerRequestBatch(context, self._tools.outbox)
        batch.update_metadata()
        batch.send()

    def _is_leaderless(self, partition: TopicPartition) -> bool:
        leadership = self._context.leaderships.get(partition)
        return leadership is not None and leadership.leader not in self._context.online(
            partition, or_leaving=True
        )

    # Log directories

    async def log_dirs_changed(self) -> None:
        """Ask the brokers that lost a directory who they still serve: their answers tell what is gone."""
        notes, paths = await read_notes(self._tools.store, LogDirEvent)
        brokers = {note.broker_id for note in notes} & self._context.brokers.keys()
        asked = [
            each
            for each in self._context.replicas_on(brokers)
            if self._may_serve(each) and self._context.is_online(each, or_leaving=True)
        ]
        await self._replicas.move(asked, ReplicaState.ONLINE)
        await remove_notes(self._tools.store, paths)

    async def forget_log_dir_notes(self) -> None:
        """A new controller tells every broker what it serves, and hears from all what is gone."""
        _, paths = await read_notes(self._tools.store, LogDirEvent)
        await remove_notes(self._tools.store, paths)

    async def directories(
        self, broker_id: int, failed: Collection[TopicPartition], served: Collection[TopicPartition]
    ) -> None:
        """A broker answered which replicas lie in a failed directory and which it serves."""
        known = self._context.failed[broker_id]
        new = [each for each in failed if each in self._context.assignments and each not in known]
        known.difference_update(served)
        known.update(new)
        if new:
            _log.warning("broker %d cannot use %d replicas: a log directory failed", broker_id, len(new))
            await self._lost([Replica(partition, broker_id) for partition in new])
