"""What has to hold before the first change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from restow.model import (
    ANY_DIR,
    CheckOutcome,
    Limits,
    LiveBroker,
    LogDir,
    Move,
    Partition,
    Plan,
    Snapshot,
    Topic,
    TopicPartition,
)
from restow.model.permissions import Permissions
from restow.verify import blocking, preflight

MOVE = Move(partition=TopicPartition("orders", 0), before=(1, 2), after=(3, 2), size_bytes=100)
PLAN = Plan(cluster_id="c", created_ms=0, moves=(MOVE,), limits=Limits(fill=0.9))
DIRS = (LogDir(path="/a", total_bytes=1_000, usable_bytes=300), LogDir(path="/b", failed=False))
SNAPSHOT = Snapshot(
    cluster_id="c",
    taken_ms=0,
    controller=1,
    brokers=tuple(LiveBroker(id=number, host="h", port=number, log_dirs=DIRS[:1]) for number in (1, 2, 3)),
    topics=(
        Topic(
            name="orders",
            partitions=(Partition(number=0, replicas=(1, 2), isr=(1, 2), leader=1),),
        ),
    ),
)
VERSIONS = {broker: dict.fromkeys((34, 35, 43, 44, 45, 46), (0, 2)) for broker in (1, 2, 3)}
ALL = Permissions(
    cluster=frozenset({"ALTER", "ALTER_CONFIGS", "DESCRIBE", "DESCRIBE_CONFIGS"}),
    topics={"orders": frozenset({"ALTER_CONFIGS", "DESCRIBE", "DESCRIBE_CONFIGS"})},
)


def failing(
    snapshot: Snapshot = SNAPSHOT,
    plan: Plan = PLAN,
    versions: Any = VERSIONS,
    permissions: Permissions | None = ALL,
    outcome: CheckOutcome = CheckOutcome.FAILS,
) -> dict[str, str]:
    verdict = preflight(snapshot, plan, versions, permissions)
    return {check.name: check.evidence for check in verdict.checks if check.outcome is outcome}


def with_partition(**changes: Any) -> Snapshot:
    found = SNAPSHOT.topics[0].partitions[0]._replace(**changes)
    return replace(SNAPSHOT, topics=(replace(SNAPSHOT.topics[0], partitions=(found,)),))


def with_dirs(*dirs: LogDir) -> Snapshot:
    return replace(SNAPSHOT, brokers=tuple(replace(each, log_dirs=dirs) for each in SNAPSHOT.brokers))


def test_preflight_passes_on_a_healthy_cluster() -> None:
    verdict = preflight(SNAPSHOT, PLAN, VERSIONS, ALL)
    assert verdict.holds
    assert blocking(verdict) == ()


def test_preflight_fails_on_another_cluster() -> None:
    assert failing(plan=replace(PLAN, cluster_id="d")) == {"cluster": "it is 'c', the plan is for 'd'"}


def test_preflight_fails_when_a_target_is_down() -> None:
    assert failing(replace(SNAPSHOT, brokers=SNAPSHOT.brokers[:2])) == {"brokers alive": "1 broker: 3"}


def test_preflight_fails_when_a_broker_is_too_old() -> None:
    old = VERSIONS | {2: {35: (0, 0), 43: (0, 0), 44: (0, 0)}}
    said = failing(versions=old)["api versions"]
    assert said == (
        "3 gaps: broker 2 has no DescribeLogDirs (version 1), broker 2 has no AlterPartitionReassignments "
        "(version 0), broker 2 has no ListPartitionReassignments (version 0)"
    )
    no_dirs = {broker: {k: v for k, v in served.items() if k != 34} for broker, served in VERSIONS.items()}
    assert failing(versions=no_dirs) == {}
    within = replace(PLAN, moves=(replace(MOVE, log_dirs=("/a", ANY_DIR)),))
    assert "no AlterReplicaLogDirs" in failing(plan=within, versions=no_dirs)["api versions"]


def test_preflight_names_every_missing_acl() -> None:
    assert ALL.cluster is not None
    some = Permissions(
        cluster=ALL.cluster - {"ALTER"}, topics={"orders": frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})}
    )
    assert failing(permissions=some) == {
        "permissions": "2 missing ACLs: ALTER on the cluster (to move replicas and elect leaders), "
        "ALTER_CONFIGS on topic orders (to throttle replicas)"
    }


def test_preflight_is_unknown_but_not_blocking_without_an_answer() -> None:
    unknown = failing(
        with_dirs(LogDir(path="/a")), versions={}, permissions=None, outcome=CheckOutcome.UNKNOWN
    )
    assert unknown.keys() == {"api versions", "permissions", "free space"}
    verdict = preflight(with_dirs(LogDir(path="/a")), PLAN, {}, None)
    assert not verdict.holds
    assert blocking(verdict) == ()


def test_preflight_fails_on_drift() -> None:
    assert failing(with_partition(replicas=(2, 1))) == {
        "no drift": "1 partition: orders-0 has other replicas: [2, 1] instead of [1, 2]"
    }
    assert failing(replace(SNAPSHOT, topics=())) == {
        "no drift": "1 partition: orders-0 does not exist any more"
    }


def test_preflight_tells_our_moves_from_those_of_others() -> None:
    moving = with_partition(replicas=(3, 1, 2), adding=(3,))
    assert failing(moving) == {"no running moves": "1 partition: orders-0"}
    other = Topic(
        name="x", partitions=(Partition(number=0, replicas=(1,), isr=(1,), leader=1, removing=(1,)),)
    )
    beside = replace(SNAPSHOT, topics=(*SNAPSHOT.topics, other))
    assert failing(beside) == {}
    assert failing(beside, outcome=CheckOutcome.HOLDS)["no running moves"] == (
        "but 1 partition not in the plan: x-0"
    )


def test_preflight_fails_without_a_leader() -> None:
    assert failing(with_partition(leader=None)) == {"leaders alive": "1 partition: orders-0"}


def test_preflight_fails_on_offline_or_unknown_log_dirs() -> None:
    broken = with_dirs(DIRS[0], LogDir(path="/b", failed=True))
    assert failing(broken) == {"log dirs": "1 log dir: /b of broker 3 is offline"}
    elsewhere = replace(PLAN, moves=(replace(MOVE, log_dirs=("/z", ANY_DIR)),))
    assert failing(plan=elsewhere) == {"log dirs": "1 log dir: broker 3 has no log dir /z"}


def test_preflight_counts_the_room_below_the_fill_limit() -> None:
    """Of 1,000 bytes 300 are free and 100 of these must stay free: 200 fit."""
    for size, fits in ((200, True), (201, False)):
        found = failing(plan=replace(PLAN, moves=(replace(MOVE, size_bytes=size),)))
        assert found == ({} if fits else {"free space": "1 broker: broker 3: 201 bytes more, room for 200"})


def test_preflight_counts_the_room_that_leaving_replicas_free() -> None:
    back = Move(partition=TopicPartition("payments", 0), before=(3,), after=(1,), size_bytes=150)
    both = replace(PLAN, moves=(replace(MOVE, size_bytes=300), back))
    topic = Topic(name="payments", partitions=(Partition(number=0, replicas=(3,), isr=(3,), leader=3),))
    assert failing(replace(SNAPSHOT, topics=(*SNAPSHOT.topics, topic)), both) == {}
