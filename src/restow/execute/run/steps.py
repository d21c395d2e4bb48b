"""Compare the moves of a plan with the cluster.

A new run finds all of its partitions where the plan expects them. A resumed run finds some unchanged, some
done, some in progress, some between two steps. Partitions in any other state were changed by another tool,
and are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from restow.client import BrokerError
from restow.model import ReplicaAssignment, Step, TopicPartition
from restow.plan.drift import REMADE, ids_of, remade
from restow.plan.schedule.schedule import steps_of
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.client import Admin
    from restow.model import Move, Partition, Plan, Snapshot, Topic


async def partitions_now(admin: Admin, names: Iterable[str]) -> dict[TopicPartition, Partition]:
    """Return the partitions of these topics, without topics that are gone."""
    return partitions_of(await topics_now(admin, names))


def partitions_of(topics: Iterable[Topic]) -> dict[TopicPartition, Partition]:
    """Return all partitions of these topics by name."""
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


@dataclass(frozen=True, kw_only=True)
class Chains:
    """The steps of a plan that are left."""

    steps: tuple[tuple[Step, ...], ...]
    """The steps of each partition, in the order in which partitions should begin."""
    in_progress: tuple[Step, ...]
    """The first steps of partitions whose reassignment is in progress already."""
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
    in_progress: list[Step] = []
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
        first = _step_in_progress(move, now, plan.limits.extra_copies, ours=ours)
        if isinstance(first, str):
            strange[move.partition] = first
            continue
        steps = _rest(move, now, first, plan.limits.extra_copies)
        if isinstance(steps, str):
            strange[move.partition] = steps
        elif steps:
            left.append(steps)
            if first is not None:
                in_progress.append(first)
    return Chains(steps=tuple(left), in_progress=tuple(in_progress), strange=strange)


def rest_of(plan: Plan, snapshot: Snapshot) -> Plan:
    """Return the rest of a plan that was begun, from the present replicas."""
    left = {steps[0].partition: steps[0].before for steps in chains_of(plan, snapshot).steps}
    moves = (replace(move, before=left[move.partition]) for move in plan.moves if move.partition in left)
    return replace(plan, moves=tuple(moves))


def _step_in_progress(move: Move, now: Partition, extra_copies: int, *, ours: bool) -> Step | str | None:
    """Return the step that is in progress, or why it is not ours, or None if the partition is not moving.

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
    if now.replicas == move.before:
        return steps_of(move, extra_copies)
    known = {move.before, *(step.after for step in steps_of(move, extra_copies))}
    if now.replicas in known or set(now.replicas) == set(move.before):
        return steps_of(replace(move, before=now.replicas), extra_copies)
    return f"it has the replicas {list(now.replicas)}, which are in no step of this plan"


def _dirs_are_right(move: Move, now: Partition) -> bool:
    """Whether no replica lies in a log dir other than planned. A dead broker tells of none."""
    if not move.log_dirs:
        return True
    lies = {copy.broker: copy.log_dir for copy in now.copies if not copy.future}
    return not lies.keys() & replace(move, before=move.after, dirs_before=lies).dir_changes.keys()
