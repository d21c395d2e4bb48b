"""Make a plan from target replicas: before, after, and the order of the moves.

Targets that Kafka would refuse, that are cordoned, or that leave a partition worse off than allowed, are
refused here, with the partition concerned. The judge checks the plan as it checks those of the planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model import ANY_DIR, Move, Plan
from restow.plan.judge.waves import check_sound
from restow.plan.request.request import settled
from restow.plan.schedule.schedule import order_of
from restow.sizes import some

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.model import BrokerId, Limits, Partition, Snapshot, Topic, TopicPartition
    from restow.plan.request.request import RequestedLimits


@frozen
class Target:
    """The target replicas of a partition, and perhaps their log dirs ("any" where it does not matter)."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...]
    log_dirs: tuple[str, ...] = ()
    reason: str = ""


class ImpossiblePlan(InvalidInput):
    """Targets that cannot be reached, or not within the limits."""


def plan_from_targets(
    snapshot: Snapshot,
    targets: Iterable[Target],
    *,
    created_ms: int,
    limits: Limits | RequestedLimits | None = None,
    title: str = "",
) -> Plan:
    """Return a plan from this snapshot to the targets. Partitions already there are left out."""
    check_limits(settled(limits, ()))
    wanted = tuple(targets)
    problems = [problem for target in wanted if (problem := _problem(snapshot, target))]
    problems += _twice(wanted)
    if problems:
        raise ImpossiblePlan(some(problems, between="; "))
    moves = tuple(move for target in wanted if (move := _move(snapshot, target)))
    keep = settled(limits, moves)
    order = order_of(moves, snapshot, keep)
    if order.stuck:
        raise ImpossiblePlan(
            some([f"{step.partition}: {reason}" for step, reason in order.stuck], between="; ")
            + ". Make room there, choose another log dir or broker, or raise the limit"
        )
    plan = Plan(
        cluster_id=snapshot.cluster_id,
        created_ms=created_ms,
        moves=moves,
        waves=order.waves,
        limits=keep,
        title=title,
        topic_ids=topic_ids(snapshot, moves),
    )
    check_sound(plan, snapshot)
    return plan


def pinned_move(
    name: TopicPartition,
    partition: Partition,
    *,
    after: tuple[BrokerId, ...],
    log_dirs: tuple[str, ...] = (),
    reason: str = "",
) -> Move | None:
    """Return the move to these replicas and log dirs; None if the partition is there already."""
    move = Move(
        partition=name,
        before=partition.replicas,
        after=after,
        size_bytes=partition.size_bytes,
        log_dirs=log_dirs if any(path != ANY_DIR for path in log_dirs) else (),
        dirs_before=partition.log_dirs,
        reason=reason,
        sizes=partition.own_sizes,
    )
    return move if move.before != move.after or move.dir_changes else None


def topic_ids(snapshot: Snapshot, moves: Iterable[Move]) -> dict[str, str]:
    """Return the ids of the topics that move, as far as the cluster has them."""
    topics = {move.partition.topic for move in moves}
    known = ((name, snapshot.topic[name].id) for name in sorted(topics) if name in snapshot.topic)
    return {name: found for name, found in known if found is not None}


def check_limits(limits: Limits) -> None:
    """Refuse limits under which nothing could move."""
    for name, value in (
        ("extra copies", limits.extra_copies),
        ("moves in", limits.moves_in),
        ("moves out", limits.moves_out),
    ):
        if value < 1:
            raise InvalidInput(f"the limit of {name} is {value}: with less than 1 nothing can move")
    if not 0 < limits.fill <= 1:
        raise InvalidInput(f"a log dir cannot be filled to {limits.fill:g}: give a share above 0, up to 1")


def _problem(snapshot: Snapshot, target: Target) -> str | None:
    """Say why this target is impossible; None if it is not."""
    name = target.partition
    partition = snapshot.partition(name)
    if partition is None:
        there = snapshot.topic.get(name.topic)
        what = "there is no such topic" if there is None else f"it has {len(there.partitions)} partitions"
        return f"{name} does not exist: {what}"
    if partition.moving:
        return f"{name} is being moved already: let that end, or cancel it"
    return (
        _bad_replicas(snapshot, partition, target)
        or _bad_log_dirs(snapshot, target)
        or _cordoned(snapshot, partition, target)
        or _too_few(snapshot.topic[name.topic], partition, target)
    )


def _bad_replicas(snapshot: Snapshot, partition: Partition, target: Target) -> str | None:
    if not target.replicas:
        return f"{target.partition} is to have no replicas at all"
    if len(set(target.replicas)) < len(target.replicas):
        return f"{target.partition} is to have two replicas on one broker: {list(target.replicas)}"
    for broker in target.replicas:
        if broker not in snapshot.broker and broker not in partition.replicas:
            return f"{target.partition} is to have a replica on broker {broker}, which is not there"
    if partition.leader is None:
        return f"{target.partition} has no leader to copy from: bring one of its replicas back first"
    return None


def _bad_log_dirs(snapshot: Snapshot, target: Target) -> str | None:
    if target.log_dirs and len(target.log_dirs) != len(target.replicas):
        return f"{target.partition} has {len(target.replicas)} replicas but {len(target.log_dirs)} log dirs"
    for broker, path in zip(target.replicas, target.log_dirs, strict=False):
        if path == ANY_DIR or broker in snapshot.unanswered or broker not in snapshot.broker:
            continue
        there = {each.path: each for each in snapshot.broker[broker].log_dirs}
        if path not in there:
            known = ", ".join(there) or "none"
            return f"{target.partition}: broker {broker} has no log dir {path}; it has {known}"
        if there[path].failed:
            return f"{target.partition}: log dir {path} of broker {broker} has failed"
    return None


def _cordoned(snapshot: Snapshot, partition: Partition, target: Target) -> str | None:
    """Refuse a new replica on a cordoned broker or in a cordoned log dir; those already there may stay."""
    paths = target.log_dirs or (ANY_DIR,) * len(target.replicas)
    for broker, path in zip(target.replicas, paths, strict=True):
        there = snapshot.broker.get(broker)
        if there is None or (
            broker in partition.replicas and path in (ANY_DIR, partition.log_dirs.get(broker))
        ):
            continue
        if there.cordoned:
            return (
                f"{target.partition} is to have a new replica on broker {broker}, but all its log dirs are "
                "cordoned: uncordon one, or choose another broker"
            )
        if any(each.cordoned and each.path == path for each in there.log_dirs):
            return (
                f"{target.partition} is to have a new replica in {path} of broker {broker}, but that log dir "
                "is cordoned: uncordon it, or choose another log dir"
            )
    return None


def _too_few(topic: Topic, partition: Partition, target: Target) -> str | None:
    """Refuse fewer replicas than min.insync.replicas: producers with acks=all could no longer write."""
    least = topic.min_insync_replicas
    if len(target.replicas) < least and len(target.replicas) < len(partition.replicas):
        return (
            f"{target.partition} is to have {len(target.replicas)} replicas, but min.insync.replicas of "
            f"{topic.name} is {least}"
        )
    return None


def _twice(targets: tuple[Target, ...]) -> list[str]:
    seen: set[TopicPartition] = set()
    found = []
    for target in targets:
        if target.partition in seen:
            found.append(f"{target.partition} is there twice")
        seen.add(target.partition)
    return found


def _move(snapshot: Snapshot, target: Target) -> Move | None:
    partition = snapshot.existing(target.partition)
    return pinned_move(
        target.partition, partition, after=target.replicas, log_dirs=target.log_dirs, reason=target.reason
    )
