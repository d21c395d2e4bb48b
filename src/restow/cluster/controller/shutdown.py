"""Controlled shutdown of a broker: its leaders move first, then its followers stop.

S1  partitions it leads get another leader, if another replica is in the ISR
S2  its followers are stopped and leave the ISR
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.controller.context import Replica
from restow.cluster.controller.elections import Election
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.model import TopicPartition

_log = logging.getLogger(__name__)


class ControlledShutdown(TermPart):
    """Moves leadership off a broker that is shutting down."""

    async def leave(self, broker_id: int, epoch: int) -> tuple[TopicPartition, ...]:
        """Return the partitions that the broker still leads despite other replicas. It may ask again."""
        context = self._context
        context.require_registered(broker_id, epoch, unknown=ErrorCode.BROKER_NOT_AVAILABLE)
        context.shutting_down.add(broker_id)
        _log.info("broker %d is shutting down", broker_id)
        leads = self._led_by(broker_id)
        await self._partitions.move(leads, PartitionState.ONLINE, Election.CONTROLLED_SHUTDOWN)
        await self._tools.at(ControllerStep.S1)
        followers = [
            Replica(partition, broker_id)
            for partition in sorted(context.partitions_on((broker_id,)))
            if self._can_do_without(partition) and context.leaderships[partition].leader != broker_id
        ]
        await self._replicas.move(followers, ReplicaState.OFFLINE)
        await self._tools.at(ControllerStep.S2)
        return tuple(self._led_by(broker_id))

    def _led_by(self, broker_id: int) -> list[TopicPartition]:
        return [
            partition
            for partition in sorted(self._context.partitions_on((broker_id,)))
            if self._can_do_without(partition) and self._context.leaderships[partition].leader == broker_id
        ]

    def _can_do_without(self, partition: TopicPartition) -> bool:
        """Return whether the partition has other replicas and its topic is not being deleted."""
        return (
            len(self._context.assignments[partition].replicas) > 1
            and partition in self._context.leaderships
            and not self._context.is_deleting(partition)
        )
