"""Compare the moves of a plan with the cluster, and track the steps that were submitted.

A new run finds all of its partitions where the plan expects them. A resumed run finds some unchanged, some
done, some under way, some between two steps. Partitions in any other state were changed by another tool, and
are left alone. A submitted step is one of these:

moving      the controller lists it, with our target
arrived     it has the target replicas, in order and in their log dirs
refused     it was never listed and is where it was: the request did not get through
taken       another tool has cancelled or redirected it, or its topic is gone
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from restow.client import BrokerError, TopicPartitionReplica
from restow.model import ANY_DIR, ReplicaAssignment, Step, TopicPartition
from restow.plan.drift import REMADE, ids_of, remade
from restow.plan.schedule.schedule import steps_of
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.client import Admin, PartitionReassignment
    from restow.model import BrokerId, Copy, Move, Partition, Plan, Snapshot, Topic


_GRACE_S = 10.0
"""How long a broker's metadata may lag behind the controller."""


class StepState(Enum):
    MOVING = "moving"
    ARRIVED = "arrived"
    REFUSED = "refused"
    TAKEN = "taken"


@dataclass(slots=True, kw_only=True)
class Running:
    """A step that was submitted. `dirs` are the requested log dirs that are not reached yet."""

    step: Step
    seen: bool = False
    """Whether the controller has ever listed it."""
    odd_since_s: float | None = None
    """Since when the controller does not list it, while brokers do not show it as arrived."""
    dirs: dict[TopicPartitionReplica, str] = field(default_factory=dict)
    accepted: set[TopicPartitionReplica] = field(default_factory=set)

    def judge(
        self, move: PartitionReassignment | None, now: Partition | None, at_s: float
    ) -> tuple[StepState, str]:
        """Return the step's state; `now` matters only if the controller does not list a move."""
        step = self.step
        if move is not None:
            self.seen, self.odd_since_s = True, None
            target = ReplicaAssignment(move.replicas, move.adding, move.removing).target
            if target == step.after:
                return StepState.MOVING, ""
            return StepState.TAKEN, f"somebody else is moving it to {list(target)}"
        if now is not None and now.replicas == step.after:
            self.odd_since_s = None
            return (StepState.MOVING, "") if self.dirs else (StepState.ARRIVED, "")
        if self.odd_since_s is None:
            self.odd_since_s = at_s
        if at_s - self.odd_since_s < _GRACE_S:
            return StepState.MOVING, ""
        if now is None:
            return StepState.TAKEN, "its topic is gone"
        if not self.seen and set(now.replicas) == set(step.before):
            return StepState.REFUSED, "the cluster knows nothing of it"
        return StepState.TAKEN, f"somebody else has cancelled it; it has the replicas {list(now.replicas)}"


def target_log_dirs(step: Step, copies: Mapping[BrokerId, Copy]) -> dict[TopicPartitionReplica, str]:
    """Return the log dirs to request; `copies` are the step's replicas on disk."""
    lies = {broker: copy.log_dir for broker, copy in copies.items() if not copy.future}
    return {
        TopicPartitionReplica(step.partition, broker): path
        for broker, path in zip(step.after, step.log_dirs, strict=False)
        if path != ANY_DIR and lies.get(broker) != path
    }


async def partitions_now(admin: Admin, names: Iterable[str]) -> dict[TopicPartition, Partition]:
    """Return the partitions of these topics, without topics that are gone."""
    topics = await topics_now(admin, names)
    return {TopicPartition(topic.name, each.number): each for topic in topics for each in topic.partitions}


async def topics_now(admin: Admin, names: Iterable[str]) -> tuple[Topic, ...]:
    """Return the topics of these names that exist."""
    wanted = sorted(set(names))
    try:
        return await admin.describe_topics(wanted) if wanted else ()
    except BrokerError:
        found = [await _topic_or_nothing(admin, name) for name in wanted]
        return tuple(topic for some in found for topic in some)


async def _topic_or_nothing(admin: Admin, name: str) -> tuple[Topic, ...]:
    try:
        return await admin.describe_topics([name])
    except BrokerError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ()
        raise


async def fulfil_dirs(admin: Admin, running: Iterable[Running]) -> dict[TopicPartitionReplica, BrokerError]:
    """Request log dirs again that were not accepted, and detect arrivals; return the refusals.

    A broker without the replica remembers the request, but answers that it has none.
    """
    waiting = [each for each in running if each.dirs]
    if not waiting:
        return {}
    asked = {
        which: path for each in waiting for which, path in each.dirs.items() if which not in each.accepted
    }
    answers = await admin.alter_replica_log_dirs(asked) if asked else {}
    disks = await admin.describe_log_dirs(sorted({which.broker for each in waiting for which in each.dirs}))
    there = {
        (TopicPartitionReplica(replica.partition, broker), replica.log_dir)
        for broker, told in disks.items()
        if not isinstance(told, BrokerError)
        for replica in told.replicas
        if not replica.future
    }
    refused: dict[TopicPartitionReplica, BrokerError] = {}
    for each in waiting:
        for which, path in tuple(each.dirs.items()):
            error = answers.get(which)
            if which in asked and error is None:
                each.accepted.add(which)
            if (which, path) in there:
                del each.dirs[which]
            elif error is not None and error.code not in _NOT_YET:
                refused[which] = error
                del each.dirs[which]
    return refused


_NOT_YET = (
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


@dataclass(frozen=True, kw_only=True)
class Chains:
    """The steps of a plan that are left."""

    steps: tuple[tuple[Step, ...], ...]
    """The steps of each partition, in the order in which partitions should begin."""
    under_way: tuple[Step, ...]
    """The first steps of partitions that are moving already."""
    strange: dict[TopicPartition, str]
    """Partitions that are left alone, each with the reason."""


def chains_of(
    plan: Plan,
    snapshot: Snapshot,
    topic_ids: Mapping[str, str] | None = None,
    submitted: Collection[TopicPartition] | None = None,
) -> Chains:
    """Compare the plan with the snapshot. `topic_ids` are the ids of the topics when the run began.

    A moving partition is ours only if the run has `submitted` it.
    """
    left: list[tuple[Step, ...]] = []
    under_way: list[Step] = []
    strange: dict[TopicPartition, str] = {}
    gone = remade(topic_ids or {}, ids_of(snapshot))
    for move in plan.moves_in_order:
        now = snapshot.partition(move.partition)
        if now is None:
            strange[move.partition] = "it does not exist any more"
            continue
        if move.partition.topic in gone:
            strange[move.partition] = REMADE
            continue
        ours = submitted is None or move.partition in submitted
        first = _step_under_way(move, now, plan.limits.extra_copies, ours=ours)
        if isinstance(first, str):
            strange[move.partition] = first
            continue
        steps = _rest(move, now, first, plan.limits.extra_copies)
        if isinstance(steps, str):
            strange[move.partition] = steps
        elif steps:
            left.append(steps)
            if first is not None:
                under_way.append(first)
    return Chains(steps=tuple(left), under_way=tuple(under_way), strange=strange)


def _step_under_way(move: Move, now: Partition, extra_copies: int, *, ours: bool) -> Step | str | None:
    """Return the step that is under way, or why it is not ours, or None if the partition is not moving.

    The cluster reports the original replicas of a moving partition, but not their order; the plan has it.
    """
    if not now.moving:
        return None
    moving = ReplicaAssignment(now.replicas, now.adding, now.removing)
    for step in steps_of(move, extra_copies):
        if ours and step.after == moving.target:
            known = set(step.before) == set(moving.origin)
            return step if known else replace(step, before=moving.origin)
    return f"somebody else is moving it to {list(moving.target)}"


def _rest(move: Move, now: Partition, first: Step | None, extra_copies: int) -> tuple[Step, ...] | str:
    if first is not None:
        later = replace(move, before=first.after)
        return (first, *(steps_of(later, extra_copies) if first.after != move.after else ()))
    if now.replicas == move.after:
        return () if _dirs_are_right(move, now) else steps_of(replace(move, before=move.after), extra_copies)
    known = {move.before, *(step.after for step in steps_of(move, extra_copies))}
    if now.replicas in known or set(now.replicas) == set(move.before):
        return steps_of(replace(move, before=now.replicas), extra_copies)
    return f"it has the replicas {list(now.replicas)}, which are in no step of this plan"


def _dirs_are_right(move: Move, now: Partition) -> bool:
    if not move.log_dirs:
        return True
    lies = {copy.broker: copy.log_dir for copy in now.copies if not copy.future}
    return not replace(move, before=move.after, dirs_before=lies).dir_changes
