"""ISR changes that leaders ask the controller for (AlterPartition).

`judge` decides about one partition, in Kafka's order of checks; IsrChanges writes what was accepted and
informs all brokers. A reassignment that a new ISR completes goes on by its own watch.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from restow.cluster.controller.context import ControllerContext, Leadership

_RECOVERED, _RECOVERING = 0, 1
_ANY_EPOCH = -1
_log = logging.getLogger(__name__)


class IsrChangeKey(NamedTuple):
    """A partition as a leader names it: by its topic's name, or from version 2 on by the topic's id."""

    topic: str | UUID
    partition: int


class IsrChange(NamedTuple):
    """A leader's proposal for one partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    """Version of the state znode that the leader knows."""
    recovery: int = _RECOVERED
    broker_epochs: tuple[int, ...] = ()
    """Epochs of the ISR's brokers, -1 where the leader does not know; empty before version 3."""


def judge(
    context: ControllerContext, partition: TopicPartition, change: IsrChange
) -> Leadership | ErrorCode | None:
    """Return the state if the change was made before, the error code of a refusal, or None to accept.

    Epochs beyond those known here mean that a later controller has made them.
    """
    known = context.leaderships.get(partition)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if change.partition_epoch > known.version or change.leader_epoch > known.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < known.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if (change.leader, change.isr, change.recovery) == (known.leader, known.isr, known.recovery):
        return known
    if change.partition_epoch < known.version:
        return ErrorCode.INVALID_UPDATE_VERSION
    if change.recovery == _RECOVERING and (len(change.isr) > 1 or known.recovery == _RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not _are_eligible(context, change):
        return ErrorCode.INELIGIBLE_REPLICA
    # Kafka with ZooKeeper would write this, Kafka with KRaft refuses it, too.
    members = set(change.isr)
    is_whole = change.leader in members and members <= set(context.assignments[partition].replicas)
    return None if is_whole and change.leader == known.leader else ErrorCode.INVALID_REQUEST


def _are_eligible(context: ControllerContext, change: IsrChange) -> bool:
    """Return whether the ISR's brokers are alive, stay, and are the registrations that the leader means."""
    epochs = change.broker_epochs or (_ANY_EPOCH,) * len(change.isr)
    return all(
        (broker := context.brokers.get(broker_id)) is not None
        and broker_id not in context.shutting_down
        and epoch in (_ANY_EPOCH, broker.epoch)
        for broker_id, epoch in zip(change.isr, epochs, strict=True)
    )


class IsrChanges(TermPart):
    """Carries out the changes that leaders ask for."""

    async def alter(
        self, broker_id: int, broker_epoch: int, changes: Mapping[IsrChangeKey, IsrChange]
    ) -> dict[IsrChangeKey, Leadership | ErrorCode]:
        """Return each partition's state now, or why it stays as it was. Raises ControllerError."""
        self._context.require_registered(broker_id, broker_epoch, unknown=ErrorCode.STALE_BROKER_EPOCH)
        results: dict[IsrChangeKey, Leadership | ErrorCode] = {}
        accepted: dict[TopicPartition, IsrChangeKey] = {}
        for key, change in changes.items():
            partition = self._partition(key)
            if partition is None:
                results[key] = ErrorCode.UNKNOWN_TOPIC_ID
                continue
            verdict = judge(self._context, partition, change)
            if verdict is None:
                accepted[partition] = key
            else:
                results[key] = verdict
                if isinstance(verdict, ErrorCode):
                    _log.info("the ISR of %s stays: %s, asked was %s", partition, verdict.name, change)
        if accepted:
            results |= await self._write({each: (key, changes[key]) for each, key in accepted.items()})
        return results

    def _partition(self, key: IsrChangeKey) -> TopicPartition | None:
        if isinstance(key.topic, str):
            return TopicPartition(key.topic, key.partition)
        name = self._context.topic_name(urlsafe_b64encode(key.topic.bytes).decode().rstrip("="))
        return None if name is None else TopicPartition(name, key.partition)

    async def _write(
        self, accepted: Mapping[TopicPartition, tuple[IsrChangeKey, IsrChange]]
    ) -> dict[IsrChangeKey, Leadership | ErrorCode]:
        context = self._context
        written, stale = await self._tools.nodes.write(
            {
                partition: context.leaderships[partition]._replace(
                    isr=change.isr, recovery=change.recovery, controller_epoch=context.epoch
                )
                for partition, (_, change) in accepted.items()
            }
        )
        context.leaderships.update(written)
        await self._tools.at(ControllerStep.W1)
        if written:
            self._tools.send_metadata(written)
        refused = dict.fromkeys(accepted, ErrorCode.UNKNOWN_SERVER_ERROR) | dict.fromkeys(
            stale, ErrorCode.INVALID_UPDATE_VERSION
        )
        return {key: written.get(each) or refused[each] for each, (key, _) in accepted.items()}
