"""The tool's lines and throttles, from values alone."""

from __future__ import annotations

from restow.client import (
    BrokerError,
    BrokerLogDirs,
    ConfigResource,
    PartitionReassignment,
    ReplicaOnDisk,
    TopicPartitionReplica,
)
from restow.kafka_tool import lines, throttling
from restow.kafka_tool.log_dirs import states
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def test_progress_has_a_line_for_each_partition() -> None:
    moving = {A: PartitionReassignment(replicas=(1, 2, 3), adding=(3,), removing=(1,))}
    target = {B: (1, 2), A: (2, 3), TopicPartition("z", 0): (1,)}
    assert lines.progress(target, {A: (1, 2, 3), B: (1, 2)}, moving) == [
        "Status of partition reassignment:",
        "Reassignment of partition a-0 is still in progress.",
        "Reassignment of partition a-1 is completed.",
        "There is no active reassignment of partition z-0, but replica set is  rather than 1.",
    ]


def test_list_has_a_line_for_each_move() -> None:
    assert lines.listing({}) == ["No partition reassignments found."]
    moves = {
        B: PartitionReassignment(replicas=(1, 2), adding=(2,), removing=()),
        A: PartitionReassignment(replicas=(1, 2, 3), adding=(3,), removing=(1, 2)),
    }
    assert lines.listing(moves) == [
        "Current partition reassignments:",
        "a-0: replicas: 1,2,3. adding: 3. removing: 1,2.",
        "a-1: replicas: 1,2. adding: 2.",
    ]


def test_plurals_follow_the_count() -> None:
    assert lines.started([A]).startswith("Successfully started partition reassignment for a-0")
    assert lines.started([B, A]).endswith("reassignments for a-0,a-1")
    assert lines.clearing_topics([]) == "Clearing topic-level throttles on topics "


def test_throttles_cover_running_and_new_moves() -> None:
    running = {A: PartitionReassignment(replicas=(1, 2, 3), adding=(3,), removing=())}
    routes = throttling.ways({A: (1, 4), B: (6, 5)}, {A: (1, 2, 3), B: (5, 6)}, running)
    assert routes[A] == (frozenset({1, 2}), frozenset({4}))
    changes = throttling.changes_for(routes, 7)
    assert changes[ConfigResource("topic", "a")] == {
        "leader.replication.throttled.replicas": "0:1,0:2,1:5,1:6",
        "follower.replication.throttled.replicas": "0:4",
    }
    assert [of.name for of in changes if of.of == "broker"] == ["1", "2", "4", "5", "6"]


def test_each_log_dir_state_has_its_line() -> None:
    def disk(path: str, partition: TopicPartition, *, future: bool = False) -> ReplicaOnDisk:
        return ReplicaOnDisk(partition=partition, log_dir=path, size_bytes=0, lag_messages=0, future=future)

    c, d = TopicPartition("c", 0), TopicPartition("d", 0)
    disks = {
        1: BrokerLogDirs(
            replicas=(
                disk("/x", A),
                disk("/y", A, future=True),
                disk("/x", B),
                disk("/z", B, future=True),
                disk("/y", c),
                disk("/x", d),
            )
        ),
        2: BrokerLogDirs(),
        3: BrokerError(ErrorCode.BROKER_NOT_AVAILABLE),
    }
    targets = {TopicPartitionReplica(each, 1): "/y" for each in (A, B, c, d)}
    targets |= {TopicPartitionReplica(A, 2): "/y", TopicPartitionReplica(A, 3): "/y"}
    found = states(targets, disks)
    assert [(str(each), each.done) for each in found] == [
        ("Reassignment of replica a-0-1 is still in progress.", False),
        (
            (
                "Partition a-0 is not found in any live log dir on broker 2. "
                "There is likely an offline log directory on the broker."
            ),
            False,
        ),
        ("Partition a-0 cannot be found in any live log directory on broker 3.", False),
        ("Partition a-1 on broker 1 is being moved to log dir /z instead of /y.", False),
        ("Reassignment of replica c-0-1 completed successfully.", True),
        ("Partition d-0 on broker 1 is not being moved from log dir /x to /y.", True),
    ]
