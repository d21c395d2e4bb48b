"""What has changed in a cluster since a plan was made, and the plan made anew for what is there now."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.plan.pin import Target, plan_from_targets

if TYPE_CHECKING:
    from restow.model import BrokerId, Move, Plan, Snapshot, TopicPartition


class Drift(Enum):
    """In which way a partition is not as the plan found it."""

    GONE = "does not exist any more"
    DONE = "is already as the plan wants it"
    MOVING = "is being moved"
    ELSEWHERE = "has other replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One partition that is not where the plan starts from."""

    partition: TopicPartition
    drift: Drift
    expected: tuple[BrokerId, ...]
    found: tuple[BrokerId, ...] = ()

    def __str__(self) -> str:
        seen = f": {list(self.found)} instead of {list(self.expected)}" if self.found else ""
        return f"{self.partition} {self.drift.value}{seen}"


def differences(plan: Plan, snapshot: Snapshot) -> tuple[Difference, ...]:
    """Every partition of the plan that is not as it was; none, and the plan may be executed.

    That it is the plan's cluster is for the caller to know.
    """
    return tuple(found for move in plan.moves if (found := _difference(move, snapshot)))


def _difference(move: Move, snapshot: Snapshot) -> Difference | None:
    partition = snapshot.partition(move.partition)
    if partition is None:
        return Difference(partition=move.partition, drift=Drift.GONE, expected=move.before)
    if partition.moving:
        drift = Drift.MOVING
    elif partition.replicas == move.before:
        return None
    elif partition.replicas == move.after:
        drift = Drift.DONE
    else:
        drift = Drift.ELSEWHERE
    return Difference(partition=move.partition, drift=drift, expected=move.before, found=partition.replicas)


def rebase(plan: Plan, snapshot: Snapshot, *, created_ms: int) -> Plan:
    """The same targets from where things are now. What is done or gone is left out."""
    check_same_cluster(plan, snapshot)
    targets = (
        Target(partition=move.partition, replicas=move.after, log_dirs=move.log_dirs, reason=move.reason)
        for move in plan.moves
        if snapshot.partition(move.partition) is not None
    )
    return plan_from_targets(snapshot, targets, created_ms=created_ms, limits=plan.limits, title=plan.title)


def check_same_cluster(plan: Plan, snapshot: Snapshot) -> None:
    """A plan is for one cluster, whatever the others look like."""
    if plan.cluster_id != snapshot.cluster_id:
        raise InvalidInput(
            f"the plan is for cluster {plan.cluster_id}, but this is cluster {snapshot.cluster_id}: "
            "connect to the other, or make a plan for this one"
        )
