"""Checks of a reassignment. Pure: takes the controller's view, returns an assignment or a refusal.

A target names at least one broker, each once. Through the API, every added broker must be alive; through the
request znode, one live broker is enough, for the others may come up later. Replicas that stay are not
checked.

In both cases, the replicas that a new target drops at once (an earlier reassignment was adding them) must not
be the only ones with the data, or the only ones that can lead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.model import ReplicaAssignment
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Container

    from restow.cluster.controller.context import ControllerContext
    from restow.model import TopicPartition


class Refusal(NamedTuple):
    """Why a partition is not reassigned: the error code and a message."""

    code: ErrorCode
    message: str


NOT_MOVING = Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
NO_SUCH_PARTITION = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
BEING_DELETED = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic is queued for deletion.")
FAILED = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The reassignment failed; the controller's log says why.")


class ReassignmentTarget(NamedTuple):
    """The requested replicas of a partition, and the way of the request."""

    replicas: tuple[int, ...] | None
    """None cancels the reassignment."""
    by_node: bool = False
    allow_replication_factor_change: bool = True


def decide(
    context: ControllerContext, partition: TopicPartition, target: ReassignmentTarget
) -> ReplicaAssignment | Refusal:
    """Return the assignment to go on with, or the refusal. The checks run in Kafka's order."""
    current = context.assignments.get(partition, ReplicaAssignment(()))
    if target.replicas is None:
        if not current.is_moving:
            return NOT_MOVING
        wanted = current.cancel()
    else:
        if (flaw := _flaw(target.replicas)) is not None:
            return _invalid(flaw)
        wanted = current.reassign_to(target.replicas)
        runs = target.by_node and wanted == current
        if not runs and (flaw := _absence(wanted, target, context)) is not None:
            return _invalid(flaw)
    if partition.topic in context.deleting:
        return BEING_DELETED
    if partition not in context.assignments:
        return NO_SUCH_PARTITION
    if not target.allow_replication_factor_change and len(wanted.target) != len(current.origin):
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {len(current.origin)} to {len(wanted.target)}.",
        )
    if _strands(context, partition, wanted):
        return _invalid(
            "No replica that would be left can lead with all of the data: wait until one of "
            f"{list(wanted.origin)} is back in sync."
        )
    return wanted


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _flaw(target: tuple[int, ...]) -> str | None:
    if not target:
        return "The list of replicas is empty."
    if len(set(target)) != len(target):
        return f"The list of replicas {list(target)} names a broker twice."
    if min(target) < 0:
        return f"The list of replicas {list(target)} has a broker id below 0."
    return None


def _absence(wanted: ReplicaAssignment, target: ReassignmentTarget, context: ControllerContext) -> str | None:
    live: Container[int] = context.brokers.keys() - context.shutting_down
    dead = [each for each in wanted.adding if each not in live]
    if dead and (not target.by_node or len(dead) == len(wanted.adding)):
        return f"Replicas would be added on brokers that are not alive: {dead}."
    return None


def _strands(context: ControllerContext, partition: TopicPartition, wanted: ReplicaAssignment) -> bool:
    """Return whether the dropped replicas are the only ones with the data, or the only ones that can lead."""
    leadership = context.leaderships.get(partition)
    if leadership is None or set(context.assignments[partition].replicas) <= set(wanted.replicas):
        return False
    left = set(leadership.isr).intersection(wanted.replicas)
    online = context.online(partition)
    return not left or (leadership.leader in online and online.isdisjoint(left))


def is_complete(context: ControllerContext, partition: TopicPartition) -> bool:
    """Return whether all target replicas are in the ISR and one of them can lead."""
    assignment = context.assignments[partition]
    if not assignment.is_moving:
        return True
    leadership = context.leaderships.get(partition)
    if leadership is None:
        return False
    target = assignment.target
    return set(target) <= set(leadership.isr) and not context.online(partition).isdisjoint(target)
