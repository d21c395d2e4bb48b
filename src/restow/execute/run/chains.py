"""Where each move of a plan stands, and the steps that are left of it.

A run that begins finds all of its partitions where the plan says. One that is resumed finds some of them
there, some done, some under way, some between two steps. And others may have been at work meanwhile: what is
neither is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from restow.model import ReplicaAssignment, Step
from restow.plan.drift import REMADE, ids_of, remade
from restow.plan.schedule.steps import steps_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from restow.model import Move, Partition, Plan, Snapshot, TopicPartition


@dataclass(frozen=True, kw_only=True)
class Chains:
    """What is left of a plan."""

    steps: tuple[tuple[Step, ...], ...]
    """Partition by partition, in the order in which they should begin."""
    under_way: tuple[Step, ...]
    """The first steps of those that are being moved already."""
    strange: dict[TopicPartition, str]
    """Partitions that are left alone, each with the reason."""


def chains_of(
    plan: Plan,
    snapshot: Snapshot,
    topic_ids: Mapping[str, str] | None = None,
    submitted: Collection[TopicPartition] | None = None,
) -> Chains:
    """Compare the plan with what is there. `topic_ids` are those that topics had when the run began.

    Of the partitions that are being moved only those that the run has `submitted` can be its own.
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
        first = _under_way(move, now, plan.limits.extra_copies, ours=ours)
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


def _under_way(move: Move, now: Partition, extra_copies: int, *, ours: bool) -> Step | str | None:
    """Return the step that is under way; or why it is not ours; or None.

    A cluster tells which replicas a partition had, but not in which order; the plan knows that.
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
    return f"it has the replicas {list(now.replicas)}, which is nowhere on the way of this plan"


def _dirs_are_right(move: Move, now: Partition) -> bool:
    if not move.log_dirs:
        return True
    lies = {copy.broker: copy.log_dir for copy in now.copies if not copy.future}
    return not replace(move, before=move.after, dirs_before=lies).dir_changes
