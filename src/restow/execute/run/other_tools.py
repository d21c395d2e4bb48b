"""Detect changes by other tools to waiting partitions, so that a run never overrides them.

Kafka silently replaces a reassignment in progress, and moves a partition from wherever it is. So a run checks
each partition right before it submits a step, and all waiting partitions at each look at the whole cluster.
The controller's list of reassignments is authoritative. A broker's metadata may be older, and counts only
after it has been the same for a while.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client import BrokerError, versions_of
from restow.execute.run.steps import partitions_of, topics_now
from restow.model import ReplicaAssignment, TopicPartition
from restow.plan.drift import REMADE
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from restow.client import Admin, BrokerLogDirs, PartitionReassignment, TopicPartitionReplica
    from restow.model import BrokerId, Partition, Step

_GRACE_S = 10.0
"""How long a broker's metadata may lag behind the controller."""
_ASK_AGAIN_S = 0.5
_REASSIGN, _CHECKS_FACTOR = 45, 1
"""From this version on, the request can forbid a change of the replication factor."""

REFUSED_FOR_GOOD = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.INVALID_REPLICATION_FACTOR,
)
"""Errors that a retry cannot change: the topic is gone, or its replication factor has changed."""


class Clearance(Enum):
    """Whether a step may begin."""

    READY = "ready"
    DOUBTFUL = "doubtful"
    """It looks changed, but that may be a broker's outdated metadata."""
    OURS = "under way already"
    """Our own earlier request got through after all."""
    THERE = "there already"
    TAKEN = "taken"


@frozen
class Seen:
    """The state of partitions that are about to be moved."""

    partitions: Mapping[TopicPartition, Partition]
    moves: Mapping[TopicPartition, PartitionReassignment]
    topic_ids: Mapping[str, str]
    disks: Mapping[BrokerId, BrokerLogDirs | BrokerError] = field(default_factory=dict)


async def look_at(admin: Admin, steps: Sequence[Step], brokers: Collection[BrokerId] = ()) -> Seen:
    """Ask the controller for reassignments, a broker for metadata, and these brokers for their log dirs.

    The order matters: a reassignment that begins after the first answer shows in the second.
    """
    moves = await admin.list_partition_reassignments([step.partition for step in steps])
    topics = await topics_now(admin, {step.partition.topic for step in steps})
    return Seen(
        partitions=partitions_of(topics),
        moves=moves,
        topic_ids={topic.name: topic.id for topic in topics if topic.id is not None},
        disks=await admin.describe_log_dirs(sorted(brokers)) if brokers else {},
    )


class OtherTools:
    """Judges whether the partitions of a run still have the replicas that their steps start from."""

    def __init__(self, topic_ids: Mapping[str, str]) -> None:
        self._topic_ids = topic_ids
        self._since_s: dict[TopicPartition, float] = {}
        self._not_before_s: dict[TopicPartition, float] = {}

    def doubt(self, name: TopicPartition, at_s: float) -> str | None:
        """Say why a partition has to be checked again later; None if it may be tried now."""
        if at_s < self._not_before_s.get(name, 0.0):
            return "its replicas have changed; whether they stay so is looked at again"
        return None

    def judge(
        self, rest: Sequence[Step], seen: Seen, at_s: float, *, submitted: bool
    ) -> tuple[Clearance, str]:
        """Judge the first remaining step of a partition; `submitted` if the run has submitted it before."""
        step, name = rest[0], rest[0].partition
        known = self._topic_ids.get(name.topic)
        if known is not None and seen.topic_ids.get(name.topic, known) != known:
            return Clearance.TAKEN, REMADE
        if (move := seen.moves.get(name)) is not None:
            target = ReplicaAssignment(move.replicas, move.adding, move.removing).target
            if submitted and target == step.after:
                return Clearance.OURS, ""
            return Clearance.TAKEN, f"somebody else is moving it to {list(target)}"
        now = seen.partitions.get(name)
        if now is not None and now.replicas == step.before:
            self._since_s.pop(name, None)
            return Clearance.READY, ""
        if at_s - self._since_s.setdefault(name, at_s) < _GRACE_S:
            self._not_before_s[name] = at_s + _ASK_AGAIN_S
            return Clearance.DOUBTFUL, ""
        if now is None:
            return Clearance.TAKEN, "it does not exist any more"
        last = rest[-1]
        if now.replicas == last.after and not last.log_dirs:
            return Clearance.THERE, ""
        return Clearance.TAKEN, (
            f"somebody else has changed it: it has the replicas {list(now.replicas)}, and not "
            f"{list(step.before)}"
        )


def dir_taken(
    targets: Mapping[TopicPartitionReplica, str],
    before: Mapping[BrokerId, str],
    disks: Mapping[BrokerId, BrokerLogDirs | BrokerError],
) -> str | None:
    """Say that another tool moves, or has moved, a replica between log dirs; None if none has.

    `before` has the log dirs when the plan was made. A broker's answer about its own log dirs is never
    outdated.
    """
    for which, path in targets.items():
        told = disks.get(which.broker)
        if told is None or isinstance(told, BrokerError) or which.broker not in before:
            continue
        for replica in told.replicas:
            if replica.partition != which.partition or replica.log_dir == path:
                continue
            if replica.future:
                return f"somebody else is moving its replica on broker {which.broker} to {replica.log_dir}"
            if replica.log_dir != before[which.broker]:
                return (
                    f"somebody else has moved its replica on broker {which.broker} to {replica.log_dir}; it "
                    f"was in {before[which.broker]}"
                )
    return None


class Submitter:
    """Submits reassignments, and has the controller refuse them if the replication factor has changed."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._can_check: dict[frozenset[BrokerId], bool] = {}

    async def submit(
        self, steps: Iterable[Step], alive: frozenset[BrokerId]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Submit these steps. Where a step keeps the replication factor, ask the controller to check that."""
        keeping: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        changing: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        for step in steps:
            if step.before != step.after:
                group = keeping if len(step.before) == len(step.after) else changing
                group[step.partition] = step.after
        answers: dict[TopicPartition, BrokerError | None] = {}
        if keeping:
            checked = await self._checked(alive)
            answers.update(
                await self._admin.alter_partition_reassignments(
                    keeping, allow_replication_factor_change=not checked
                )
            )
        if changing:
            answers.update(await self._admin.alter_partition_reassignments(changing))
        return answers

    async def _checked(self, alive: frozenset[BrokerId]) -> bool:
        """Return whether every broker that may get the request supports the check."""
        if alive not in self._can_check:
            versions = await versions_of(self._admin, alive)
            self._can_check = {
                alive: bool(versions)
                and all(told.get(_REASSIGN, (0, 0))[1] >= _CHECKS_FACTOR for told in versions.values())
            }
        return self._can_check[alive]
