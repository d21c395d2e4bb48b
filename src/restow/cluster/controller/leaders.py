"""Requested leader elections, and the periodic return of leadership to preferred replicas."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from restow.cluster.controller.elections import Election
from restow.cluster.controller.guarded import readable
from restow.cluster.controller.states import PartitionState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart
from restow.cluster.store import Delete, NoNode
from restow.cluster.store.znodes import PreferredReplicaElection
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.controller.context import ControllerContext
    from restow.model import TopicPartition

_UNAVAILABLE = {
    Election.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    Election.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
_log = logging.getLogger(__name__)


def obstacle(context: ControllerContext, partition: TopicPartition, election: Election) -> ErrorCode | None:
    """Return why this election is not needed or not possible; None if it should be held."""
    if partition not in context.assignments:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if context.is_deleting(partition):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    leadership = context.leaderships.get(partition)
    if leadership is None:
        return _UNAVAILABLE[election]
    if election is Election.PREFERRED:
        needed = leadership.leader != context.assignments[partition].replicas[0]
    else:
        needed = leadership.leader not in context.online(partition, or_leaving=True)
    return None if needed else ErrorCode.ELECTION_NOT_NEEDED


def imbalanced(context: ControllerContext, percentage: int) -> list[TopicPartition]:
    """Return the partitions to give back to preferred replicas on brokers that lead too few of theirs."""
    should: defaultdict[int, int] = defaultdict(int)
    astray: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for partition, assignment in context.assignments.items():
        leadership = context.leaderships.get(partition)
        if leadership is None or context.is_deleting(partition) or not assignment.replicas:
            continue
        first = assignment.replicas[0]
        should[first] += 1
        if leadership.leader != first:
            astray[first].append(partition)
    return [
        partition
        for broker_id, partitions in sorted(astray.items())
        if len(partitions) * 100 > percentage * should[broker_id]
        for partition in partitions
        if not context.is_moving(partition)
        and broker_id in context.online(partition)
        and broker_id in context.leaderships[partition].isr
    ]


class Leaders(TermPart):
    """Holds requested and periodic elections."""

    async def elect(
        self, election: Election, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, ErrorCode]:
        """Return the result per partition. For None (all), partitions that need no election are left out."""
        wanted = tuple(self._context.assignments if partitions is None else dict.fromkeys(partitions))
        answers = {each: obstacle(self._context, each, election) for each in wanted}
        if partitions is None:
            answers = {p: code for p, code in answers.items() if code is not ErrorCode.ELECTION_NOT_NEEDED}
        able = [each for each, code in answers.items() if code is None]
        elected = await self._partitions.move(able, PartitionState.ONLINE, election)
        failed = _UNAVAILABLE[election]
        return {
            each: code if code is not None else (ErrorCode.NONE if each in elected else failed)
            for each, code in answers.items()
        }

    async def requested(self) -> None:
        """Hold the preferred elections listed in the store, then remove the list."""
        path = PreferredReplicaElection.PATH
        try:
            node = await self._tools.store.read.get(path)
        except NoNode:
            return
        request = readable(PreferredReplicaElection.decode, node, path)
        if request is not None:
            for partition, code in (await self.elect(Election.PREFERRED, request.partitions)).items():
                if code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                    _log.warning("no preferred election for %s: %s", partition, code.message)
        await self._tools.at(ControllerStep.P1)
        await self._tools.store.multi([Delete(path)])

    async def balance(self) -> None:
        """Elect preferred replicas where the imbalance is too large."""
        astray = imbalanced(self._context, self._tools.config.rebalance_percentage)
        if astray:
            _log.info("electing the preferred leader of %d partitions", len(astray))
            await self.elect(Election.PREFERRED, astray)
