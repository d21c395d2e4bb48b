"""Triggers of a reassignment: events that start, continue or end one.

    a request through the API        alter()
    the request znode changed        requested()
    an ISR changed                   isr_changed()
    a broker came up                 resume_for()
    a controller was elected         start()

`steps.py` has the steps, `rules.py` the checks. The latest target replaces an earlier one, whichever way it
came.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.controller.errors import ControllerError
from restow.cluster.controller.reassignment.nodes import read_request, take_out
from restow.cluster.controller.reassignment.rules import (
    FAILED,
    ReassignmentTarget,
    Refusal,
    decide,
    is_complete,
)
from restow.cluster.controller.reassignment.steps import Steps
from restow.cluster.controller.reassignment.watch import IsrWatch
from restow.cluster.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from restow.cluster.controller.deletion import Deletion
    from restow.cluster.controller.events import Work
    from restow.cluster.controller.reassignment.nodes import Assignments
    from restow.cluster.controller.tools import Tools
    from restow.model import ReplicaAssignment, TopicPartition

_log = logging.getLogger(__name__)


class Reassignment:
    """All ongoing reassignments, from the API and from the request znode."""

    def __init__(self, tools: Tools, deletion: Deletion, enqueue: Callable[[str, Work], object]) -> None:
        self._tools = tools
        self._context = tools.context
        self._watch = IsrWatch(
            tools.store.read, lambda: enqueue("ISRs of moving partitions", self.isr_changed)
        )
        self._steps = Steps(tools, deletion, self._watch)
        self._request_born = -1

    # Triggers

    async def start(self) -> None:
        """Take up the request znode, then every other ongoing reassignment, for a new controller."""
        await self._disown_leftovers()
        self._watch.remember(each for each, found in self._context.assignments.items() if found.is_moving)
        begun = await self._take_request()
        await self._resume(each for each in self._watch.moving if each not in begun)

    async def requested(self) -> None:
        """Read the request znode again. Most changes after the first read are our own."""
        await self._take_request()

    async def alter(
        self, targets: Mapping[TopicPartition, ReassignmentTarget]
    ) -> dict[TopicPartition, Refusal | None]:
        """Start, replace or cancel reassignments. Return None per accepted partition, or the refusal."""
        accepted, results = await self._decide(targets)
        if accepted:
            await take_out(self._tools.store, lambda each, _: each in accepted)
        return {**dict.fromkeys(targets), **results, **await self._move(accepted)}

    async def resume_for(self, brokers: Iterable[int]) -> None:
        """Continue reassignments to brokers that came up, which may not know of them yet."""
        came = frozenset(brokers)
        assignments = self._context.assignments
        await self._resume(
            each for each in self._watch.moving if not came.isdisjoint(assignments[each].target)
        )

    async def isr_changed(self) -> None:
        """Finish the reassignments that are complete by now."""
        context = self._context
        changed = [each for each in await self._watch.take() if each in context.assignments]
        found = await self._tools.nodes.read(changed)
        context.leaderships.update(found)
        complete = []
        for partition in found:
            if is_complete(context, partition):
                complete.append(partition)
            else:
                self._tell_progress(partition)
        if complete:
            await self._isolated(self._finish, {each: context.assignments[each] for each in complete})

    async def forget_gone(self) -> None:
        """Drop the reassignments of topics that were removed by hand."""
        gone = {each for each in self._watch.moving if each not in self._context.assignments}
        if gone:
            self._watch.drop(gone)
            await take_out(self._tools.store, lambda each, _: each in gone)

    def running(self, partitions: Iterable[TopicPartition] | None) -> Assignments:
        """Return the ongoing reassignments of these partitions, or all for None."""
        wanted = self._watch.moving if partitions is None else dict.fromkeys(partitions)
        assignments = self._context.assignments
        return {
            each: assignments[each] for each in wanted if each in assignments and assignments[each].is_moving
        }

    # Implementation

    async def _disown_leftovers(self) -> None:
        """Take replicas out of ISRs that the previous controller had already unassigned."""
        assignments = self._context.assignments
        leftovers = {
            partition: gone
            for partition, leadership in self._context.leaderships.items()
            if (gone := set(leadership.isr).difference(assignments[partition].replicas))
        }
        if leftovers:
            _log.warning("%d ISRs have replicas that are not assigned", len(leftovers))
            await self._steps.disown(leftovers)

    async def _take_request(self) -> set[TopicPartition]:
        """Return the partitions of the request znode that are reassigned. The others leave the znode."""
        request = await read_request(self._tools.store)
        if request is None or request.born == self._request_born:
            return set()
        self._request_born = request.born
        targets = {
            each: ReassignmentTarget(replicas, by_node=True) for each, replicas in request.targets.items()
        }
        accepted, refused = await self._decide(targets)
        refused |= await self._move(accepted)
        for partition, refusal in refused.items():
            _log.warning("%s is not reassigned: %s", partition, refusal.message)
        if refused or not targets:
            await take_out(self._tools.store, lambda each, _: each in refused)
        return accepted.keys() - refused.keys()

    async def _decide(
        self, targets: Mapping[TopicPartition, ReassignmentTarget]
    ) -> tuple[dict[TopicPartition, ReplicaAssignment], dict[TopicPartition, Refusal]]:
        """Return the accepted assignments and the refusals. A replaced reassignment's ISR counts."""
        context = self._context
        replaced = self.running(targets)
        context.leaderships.update(await self._tools.nodes.read(replaced))
        accepted: dict[TopicPartition, ReplicaAssignment] = {}
        refused: dict[TopicPartition, Refusal] = {}
        for partition, target in targets.items():
            decision = decide(context, partition, target)
            if isinstance(decision, Refusal):
                refused[partition] = decision
            else:
                accepted[partition] = decision
        return accepted, refused

    async def _resume(self, partitions: Iterable[TopicPartition]) -> None:
        assignments = self._context.assignments
        await self._move({each: assignments[each] for each in partitions})

    async def _move(self, moves: Assignments) -> dict[TopicPartition, Refusal]:
        """Return the partitions that failed."""
        return dict.fromkeys(await self._isolated(self._steps.move, moves), FAILED) if moves else {}

    async def _finish(self, moves: Assignments) -> set[TopicPartition]:
        await self._steps.finish(moves)
        return set()

    async def _isolated(
        self, work: Callable[[Assignments], Awaitable[set[TopicPartition]]], moves: Assignments
    ) -> set[TopicPartition]:
        """Run the steps for all partitions together. If that fails, run them one by one to isolate the
        failing ones.

        Every step may be repeated. Errors that end a term are raised.
        """
        try:
            return await work(moves)
        except (ControllerError, StoreError):
            raise
        except Exception:  # noqa: BLE001  logged, and returned to the client
            _log.exception("reassigning %d partitions failed, the first is %s", len(moves), next(iter(moves)))
        if len(moves) == 1:
            return set(moves)
        failed: set[TopicPartition] = set()
        for partition, assignment in moves.items():
            failed |= await self._isolated(work, {partition: assignment})
        return failed

    def _tell_progress(self, partition: TopicPartition) -> None:
        target = self._context.assignments[partition].target
        leadership = self._context.leaderships.get(partition)
        missing = [each for each in target if leadership is None or each not in leadership.isr]
        _log.info(
            "%s: %d of %d replicas have caught up, missing are %s",
            partition,
            len(target) - len(missing),
            len(target),
            missing,
        )
