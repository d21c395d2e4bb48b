"""Check what has to hold before the first change, by a snapshot and the brokers' answers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from restow.model import ANY_DIR, Check, CheckOutcome, Verdict
from restow.model.permissions import CLUSTER, RUN, TOPIC, Permissions
from restow.plan.drift import REBASE, Drift, differences
from restow.sizes import count, some
from restow.verify.evidence import fails, holds, none_of, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from restow.model import BrokerId, LogDir, Plan, Snapshot

_NEEDED = {
    35: ("DescribeLogDirs", 1),
    43: ("ElectLeaders", 0),
    44: ("IncrementalAlterConfigs", 0),
    45: ("AlterPartitionReassignments", 0),
    46: ("ListPartitionReassignments", 0),
}
_NEEDED_FOR_DIRS = {34: ("AlterReplicaLogDirs", 1)}


def preflight(
    snapshot: Snapshot,
    plan: Plan,
    versions: Mapping[BrokerId, Mapping[int, tuple[int, int]]],
    permissions: Permissions | None = None,
) -> Verdict:
    """Check whether the plan can be executed on the cluster as it is now.

    A check without an answer is UNKNOWN, and the caller decides: old brokers do not report everything.
    """
    return Verdict(
        subject=f"the plan of {count(len(plan.moves), 'move')} can begin",
        checks=(
            _right_cluster(snapshot, plan),
            _brokers_alive(snapshot, plan),
            _can_do(plan, versions),
            _may_do(plan, permissions or Permissions()),
            _no_drift(snapshot, plan),
            _nobody_else_moves(snapshot, plan),
            _leaders_alive(snapshot, plan),
            _dirs_well(snapshot, plan),
            _free_space(snapshot, plan),
        ),
    )


def blocking(verdict: Verdict, of: Collection[str] | None = None) -> tuple[Check, ...]:
    """Return the checks that prevent the start: those known to fail, of all or of the named ones."""
    return tuple(
        check
        for check in verdict.checks
        if check.outcome is CheckOutcome.FAILS and (of is None or check.name in of)
    )


def _right_cluster(snapshot: Snapshot, plan: Plan) -> Check:
    it_is = f"it is {snapshot.cluster_id!r}"
    if snapshot.cluster_id == plan.cluster_id:
        return holds("cluster", it_is)
    return fails(
        "cluster", f"{it_is}, the plan is for {plan.cluster_id!r}", "check the address, or plan again"
    )


def _brokers_alive(snapshot: Snapshot, plan: Plan) -> Check:
    targets = {broker for move in plan.moves for broker in move.adding}
    missing = sorted(targets - snapshot.broker.keys())
    return none_of(
        "brokers alive",
        missing,
        "broker",
        good=f"{count(len(targets), 'broker')} that replicas go to",
        advice="start them, or plan without them",
    )


def _can_do(plan: Plan, versions: Mapping[BrokerId, Mapping[int, tuple[int, int]]]) -> Check:
    needed = _NEEDED | (_NEEDED_FOR_DIRS if any(move.log_dirs for move in plan.moves) else {})
    if not versions:
        evidence = "no broker tells which requests it answers"
        return unknown("api versions", evidence)
    lacking = [
        f"broker {broker} has no {name} (version {least})"
        for broker, served in sorted(versions.items())
        for key, (name, least) in needed.items()
        if served.get(key, (0, -1))[1] < least
    ]
    return none_of(
        "api versions",
        lacking,
        "gap",
        good=f"{count(len(versions), 'broker')} can do all of it",
        advice="Kafka 2.4 is the oldest that can; older ones go through --zookeeper",
    )


def _may_do(plan: Plan, permissions: Permissions) -> Check:
    if permissions.cluster is None:
        return unknown(
            "permissions",
            "the cluster does not tell what is allowed",
            "what is missing will show when it is asked for",
        )
    missing = [
        f"{each.operation} on the cluster ({each.why})"
        for each in RUN
        if each.on == CLUSTER and each.operation not in permissions.cluster
    ]
    for topic in sorted({move.partition.topic for move in plan.moves}):
        allowed = permissions.topics.get(topic)
        if allowed is not None:
            missing += [
                f"{each.operation} on topic {topic} ({each.why})"
                for each in RUN
                if each.on == TOPIC and each.operation not in allowed
            ]
    return none_of(
        "permissions",
        missing,
        "missing ACL",
        good="everything that is needed is allowed",
        advice="grant them (restow acls execute prints the lines), or run as somebody who has them",
    )


def _no_drift(snapshot: Snapshot, plan: Plan) -> Check:
    """Check for drift; moving partitions have a check of their own."""
    return none_of(
        "no drift",
        [each for each in differences(plan, snapshot) if each.drift is not Drift.MOVING],
        "partition",
        good="every partition is where the plan starts from",
        advice=REBASE,
    )


def _nobody_else_moves(snapshot: Snapshot, plan: Plan) -> Check:
    """Check for other moves. Those of other partitions are reported, since they share disks and network."""
    ours = {move.partition for move in plan.moves}
    moving = [which for which, each in snapshot.all_partitions() if each.moving]
    others = [which for which in moving if which not in ours]
    return none_of(
        "no running moves",
        [str(which) for which in moving if which in ours],
        "partition",
        good=f"but {count(len(others), 'partition')} not in the plan: {some(others)}"
        if others
        else "nothing is being moved",
        advice="wait for them (restow watch), or see whose they are (restow doctor)",
    )


def _leaders_alive(snapshot: Snapshot, plan: Plan) -> Check:
    """Check that every partition has a leader to copy from."""
    partitions = ((move.partition, snapshot.partition(move.partition)) for move in plan.moves)
    return none_of(
        "leaders alive",
        [str(which) for which, found in partitions if found is not None and found.leader is None],
        "partition",
        good="every partition to be moved has a leader",
        advice="start a broker that has an in-sync replica, or leave these partitions out",
    )


def _dirs_well(snapshot: Snapshot, plan: Plan) -> Check:
    """Check for offline log dirs on receiving brokers, and for log dirs that do not exist.

    Replicas may be moved away from a broker with an offline log dir.
    """
    receive = {broker for move in plan.moves for broker in (*move.adding, *move.dir_changes)}
    wrong = [
        f"{directory.path} of broker {broker} is offline"
        for broker in sorted(receive & snapshot.broker.keys())
        for directory in snapshot.broker[broker].log_dirs
        if directory.failed
    ]
    wanted = {
        (broker, path)
        for move in plan.moves
        for broker, path in zip(move.after, move.log_dirs, strict=False)
        if path != ANY_DIR
    }
    for broker, path in sorted(wanted):
        if broker in snapshot.broker and broker not in snapshot.unanswered:
            known = {each.path for each in snapshot.broker[broker].log_dirs}
            wrong += [] if path in known else [f"broker {broker} has no log dir {path}"]
    return none_of(
        "log dirs",
        wrong,
        "log dir",
        good="all that are needed are there",
        advice="repair them, or plan without them",
    )


def _free_space(snapshot: Snapshot, plan: Plan) -> Check:
    """Check that everything fits in the end. The executor checks the space at every moment."""
    more: dict[BrokerId, int] = defaultdict(int)
    for move in plan.moves:
        for broker in move.adding:
            more[broker] += move.size_bytes
        for broker in move.removing:
            more[broker] -= move.own_size(broker)
    untold, full = [], []
    for broker, size in sorted(more.items()):
        if size <= 0 or broker not in snapshot.broker:
            continue
        room = _room(snapshot.broker[broker].log_dirs, plan.limits.fill)
        if room is None:
            untold.append(broker)
        elif size > room:
            full.append(f"broker {broker}: {size:,} bytes more, room for {max(0, room):,}")
    if untold and not full:
        return unknown(
            "free space",
            f"{count(len(untold), 'broker')} do not tell how large their disks are: {some(untold)}",
            "see to it that there is room; brokers tell it since 3.3",
        )
    return none_of(
        "free space",
        full,
        "broker",
        good=f"all of it fits below {plan.limits.fill:.0%} of every disk",
        advice="free some space, or plan for other brokers",
    )


def _room(log_dirs: tuple[LogDir, ...], fill: float) -> int | None:
    """Return the bytes that fit into a broker's log dirs, each on its own file system."""
    well = [each for each in log_dirs if not each.failed]
    if not well or any(each.total_bytes is None or each.usable_bytes is None for each in well):
        return None
    return sum(int((each.usable_bytes or 0) - (1 - fill) * (each.total_bytes or 0)) for each in well)
