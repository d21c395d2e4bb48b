"""Find what has changed in a cluster since a plan was made, and rebase the plan on the present state."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model import Left
from restow.plan.pin import Target, plan_from_targets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, Move, Plan, Snapshot, TopicPartition

REMADE = "its topic was deleted and made anew: that one is not what the plan was made for"
HIDDEN = "cannot be seen, because DESCRIBE on its topic is not allowed"
REBASE = "make the plan anew, or rebase it: `restow plan rebase PLAN -o NEW`"


class Drift(Enum):
    """How a partition differs from what the plan found."""

    GONE = "does not exist any more"
    HIDDEN = HIDDEN
    REMADE = "is of a topic that was deleted and made anew"
    DONE = "is already as the plan wants it"
    MOVING = "is being moved"
    ELSEWHERE = "has other replicas"


@frozen
class Difference:
    """A partition that is no longer what the plan starts from."""

    partition: TopicPartition
    drift: Drift
    expected: tuple[BrokerId, ...]
    found: tuple[BrokerId, ...] = ()

    def __str__(self) -> str:
        seen = f": {list(self.found)} instead of {list(self.expected)}" if self.found else ""
        return f"{self.partition} {self.drift.value}{seen}"


def differences(plan: Plan, snapshot: Snapshot) -> tuple[Difference, ...]:
    """Return the partitions of the plan that have changed. If there are none, the plan may be executed.

    The caller has checked that it is the plan's cluster.
    """
    strange = remade(plan.topic_ids, ids_of(snapshot))
    return tuple(found for move in plan.moves if (found := _difference(move, snapshot, strange)))


def remade(before: Mapping[str, str], now: Mapping[str, str]) -> frozenset[str]:
    """Return the topics whose id has changed. Clusters older than 2.8 have no topic ids."""
    return frozenset(topic for topic, known in before.items() if now.get(topic, known) != known)


def ids_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the ids of all topics, as far as the cluster has them."""
    return {topic.name: topic.id for topic in snapshot.topics if topic.id is not None}


def _difference(move: Move, snapshot: Snapshot, strange: frozenset[str]) -> Difference | None:
    partition = snapshot.partition(move.partition)
    if partition is None:
        drift = Drift.HIDDEN if move.partition.topic in snapshot.hidden_topics else Drift.GONE
        return Difference(partition=move.partition, drift=drift, expected=move.before)
    if move.partition.topic in strange:
        return Difference(partition=move.partition, drift=Drift.REMADE, expected=move.before)
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
    """Return a plan with the same targets and limits that starts from the present state.

    Moves that are done or whose topic is gone are left out. A partition is left behind, with the reason, if
    its topic was created anew, because the old target may not suit it, or if we may not see it.
    """
    check_same_cluster(plan, snapshot)
    strange = remade(plan.topic_ids, ids_of(snapshot))
    there = [move for move in plan.moves if snapshot.partition(move.partition) is not None]
    targets = (
        Target(partition=move.partition, replicas=move.after, log_dirs=move.log_dirs, reason=move.reason)
        for move in there
        if move.partition.topic not in strange
    )
    left = [Left(partition=move.partition, why=REMADE) for move in there if move.partition.topic in strange]
    left += [
        Left(partition=move.partition, why=HIDDEN)
        for move in plan.moves
        if move.partition.topic in snapshot.hidden_topics
    ]
    still = [each for each in plan.leaves if snapshot.partition(each.partition) is not None]
    made = plan_from_targets(snapshot, targets, created_ms=created_ms, limits=plan.limits, title=plan.title)
    return replace(
        made, promises=plan.promises, known_partitions=plan.known_partitions, leaves=(*still, *left)
    )


def check_same_cluster(plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a plan that was made for another cluster."""
    if plan.cluster_id != snapshot.cluster_id:
        raise InvalidInput(
            f"the plan is for cluster {plan.cluster_id}, but this is cluster {snapshot.cluster_id}: "
            "connect to the other, or make a plan for this one"
        )
