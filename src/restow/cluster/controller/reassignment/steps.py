"""The steps of a reassignment, for many partitions at a time.

    U0  the reassignment is accepted; nothing is written yet
    U1  the new assignment into the topics' znodes                   from here on it survives the controller
    U2  the same in memory; replicas that only the replaced reassignment was adding are deleted

    A   while a target replica is not in the ISR
    A1    the leader epoch raised; LeaderAndIsr to old and new replicas
    A2    added replicas New: brokers create them and start to fetch

    B   when all target replicas are in the ISR
    B1    added replicas Online
    B2    only the target in memory, so that no leader adds removed replicas to the ISR again
    B3    a leader in the target: elected if necessary, otherwise only a new epoch
    B4    removed replicas Offline: out of the ISR, stopped
    B5    removed replicas deleted
    B6    only the target in the topics' znodes
    B7    the partition out of the request znode
    B8    UpdateMetadata to every broker; blocked deletions continue

The next controller may repeat every step from the start: until B6 the topic's znode names the reassignment,
and the partition's state shows how far it is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.controller.context import Replica
from restow.cluster.controller.elections import Election
from restow.cluster.controller.reassignment.nodes import take_out, write_assignments
from restow.cluster.controller.reassignment.rules import is_complete
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart, Tools
from restow.model import ReplicaAssignment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.cluster.controller.context import Leadership
    from restow.cluster.controller.deletion import Deletion
    from restow.cluster.controller.reassignment.nodes import Assignments
    from restow.cluster.controller.reassignment.watch import IsrWatch
    from restow.model import TopicPartition

_R = ReplicaState
_log = logging.getLogger(__name__)


class Steps(TermPart):
    """Carries reassignments from step to step."""

    def __init__(self, tools: Tools, deletion: Deletion, watch: IsrWatch) -> None:
        super().__init__(tools)
        self._deletion = deletion
        self._watch = watch

    async def move(self, moves: Assignments) -> set[TopicPartition]:
        """Run U, then A or B for each. Return the partitions that could not be written."""
        self._context.blocked |= self._context.deleting & {each.topic for each in moves}
        failed = await self._update(moves)
        going = [each for each in moves if each not in failed]
        await self._watch.add(going)
        await self._read(going)
        await self._lead_first_time(going)
        complete = [each for each in going if is_complete(self._context, each)]
        await self._begin([each for each in going if not is_complete(self._context, each)])
        await self.finish(complete)
        return failed

    async def _read(self, partitions: Iterable[TopicPartition]) -> None:
        self._context.leaderships.update(await self._tools.nodes.read(partitions))

    async def _lead_first_time(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect a first leader for partitions that had none, because no replica was alive."""
        context = self._context
        new = [each for each in partitions if context.partition_states[each] is PartitionState.NEW]
        unknown = [each for each in context.replicas(new) if context.replica_states[each] is _R.NON_EXISTENT]
        await self._replicas.move(unknown, _R.NEW)
        await self._partitions.move(new, PartitionState.ONLINE)

    # U

    async def _update(self, moves: Assignments) -> set[TopicPartition]:
        """Run U1 and U2 for partitions that differ from their target."""
        context = self._context
        changed = {each: wanted for each, wanted in moves.items() if context.assignments[each] != wanted}
        if not changed:
            return set()
        await self._tools.at(ControllerStep.U0)
        _say("U1", changed)
        failed = await write_assignments(self._tools, changed)
        await self._tools.at(ControllerStep.U1)
        dropped: dict[TopicPartition, list[int]] = {}
        for partition, wanted in changed.items():
            if partition in failed:
                continue
            before = context.assignments[partition].replicas
            context.assign(partition, wanted)
            if gone := [each for each in before if each not in wanted.replicas]:
                dropped[partition] = gone
        await self.disown(dropped)
        await self._remove([Replica(each, broker_id) for each in dropped for broker_id in dropped[each]])
        await self._tools.at(ControllerStep.U2)
        return failed

    async def disown(self, dropped: Mapping[TopicPartition, Collection[int]]) -> None:
        """Take unassigned replicas out of ISRs, and elect other leaders where necessary.

        A new leader epoch invalidates an ISR change that the leader may be writing now.
        """
        context = self._context
        headless = {
            each: None
            for each, gone in dropped.items()
            if each in context.leaderships and context.leaderships[each].leader in gone
        }
        led = [each for each in dropped if each not in headless]
        await self._partitions.move(headless, PartitionState.ONLINE)
        batch = self._tools.batch()
        for partition, leadership in (await self._raise_epochs(led, dropped)).items():
            batch.leader_and_isr(context.assignments[partition].replicas, partition, leadership)
        batch.send()

    async def _remove(self, replicas: Collection[Replica]) -> None:
        """Stop and delete these replicas without waiting. A dead broker finds out when it is back."""
        await self._replicas.move(replicas, _R.OFFLINE)
        await self._delete(replicas)

    async def _delete(self, replicas: Collection[Replica]) -> None:
        for state in (_R.DELETION_STARTED, _R.DELETION_SUCCESSFUL, _R.NON_EXISTENT):
            await self._replicas.move(replicas, state)

    # A

    async def _begin(self, partitions: Collection[TopicPartition]) -> None:
        """Run A1 and A2."""
        if not partitions:
            return
        context = self._context
        _say("A1", partitions)
        assignments = {each: context.assignments[each] for each in partitions}
        batch = self._tools.batch()
        for partition, leadership in (await self._raise_epochs(partitions)).items():
            assignment = assignments[partition]
            batch.leader_and_isr(assignment.origin, partition, leadership)
            batch.leader_and_isr(assignment.adding, partition, leadership, is_new=True)
        await self._tools.at(ControllerStep.W1)
        batch.send()
        await self._tools.at(ControllerStep.A1)
        added = [Replica(each, broker_id) for each in partitions for broker_id in assignments[each].adding]
        await self._replicas.move(added, _R.NEW)
        await self._tools.at(ControllerStep.A2)

    async def _raise_epochs(
        self,
        partitions: Iterable[TopicPartition],
        without: Mapping[TopicPartition, Collection[int]] | None = None,
    ) -> Mapping[TopicPartition, Leadership]:
        known = self._context.leaderships
        led = {each: known[each] for each in partitions if each in known}
        raised = await self._tools.nodes.raise_epochs(led, without)
        known.update(raised)
        return raised

    # B

    async def finish(self, partitions: Collection[TopicPartition]) -> None:
        """Run B1 to B8."""
        if not partitions:
            return
        context = self._context
        _say("B1", partitions)
        before = {each: context.assignments[each] for each in partitions}
        added = [Replica(each, broker_id) for each in before for broker_id in before[each].adding]
        await self._replicas.move(added, _R.ONLINE)
        await self._tools.at(ControllerStep.B1)
        for partition, assignment in before.items():
            context.assign(partition, ReplicaAssignment(assignment.target))
        await self._tools.at(ControllerStep.B2)
        await self._lead_from_target(before)
        await self._tools.at(ControllerStep.B3)
        await self._fall_back([each for each in before if not self._is_safe(each, before[each])], before)
        if not before:
            return
        removed = [Replica(each, broker_id) for each in before for broker_id in before[each].removing]
        await self._replicas.move(removed, _R.OFFLINE)
        await self._tools.at(ControllerStep.B4)
        await self._delete(removed)
        await self._tools.at(ControllerStep.B5)
        await self._settle({each: context.assignments[each] for each in before})

    async def _lead_from_target(self, partitions: Iterable[TopicPartition]) -> None:
        """Run B3."""
        context = self._context
        elect: list[TopicPartition] = []
        keep: list[TopicPartition] = []
        for partition in partitions:
            leadership = context.leaderships.get(partition)
            if leadership is not None:
                stays = leadership.leader in context.online(partition)
                (keep if stays else elect).append(partition)
        await self._partitions.move(elect, PartitionState.ONLINE, Election.REASSIGNMENT)
        batch = self._tools.batch()
        for partition, leadership in (await self._raise_epochs(keep)).items():
            batch.leader_and_isr(context.assignments[partition].replicas, partition, leadership)
        await self._tools.at(ControllerStep.W1)
        batch.send()

    def _is_safe(self, partition: TopicPartition, before: ReplicaAssignment) -> bool:
        """Return whether the target alone can serve the partition, by the state that B3 wrote."""
        leadership = self._context.leaderships.get(partition)
        if not before.is_moving or leadership is None:
            return True
        return set(before.target) <= set(leadership.isr) and leadership.leader in before.target

    async def _fall_back(
        self, partitions: Collection[TopicPartition], before: dict[TopicPartition, ReplicaAssignment]
    ) -> None:
        """Undo B2 because the ISR shrank, and wait for the ISR again. Nothing was removed."""
        for partition in partitions:
            _log.warning("B3 %s: not all of %s are in sync any more", partition, before[partition].target)
            self._context.assign(partition, before.pop(partition))
        await self._begin(partitions)

    async def _settle(self, done: Assignments) -> None:
        """Run B6 to B8."""
        await write_assignments(self._tools, done)
        await self._tools.at(ControllerStep.B6)
        self._watch.drop(done)
        await take_out(self._tools.store, lambda each, target: each in done and done[each].replicas == target)
        await self._tools.at(ControllerStep.B7)
        self._tools.send_metadata(done)
        _say("B8", done)
        await self._tools.at(ControllerStep.B8)
        await self._deletion.resume_for({each.topic for each in done})


def _say(label: str, partitions: Collection[TopicPartition]) -> None:
    _log.info("%s of %d partitions, the first is %s", label, len(partitions), next(iter(partitions), None))
    for partition in partitions if _log.isEnabledFor(logging.DEBUG) else ():
        _log.debug("%s %s", label, partition)
