"""Which consumer groups a plan touches."""

from __future__ import annotations

from dataclasses import replace

from restow.model import (
    LiveBroker,
    Move,
    Partition,
    ReadingGroup,
    ReadingMember,
    Snapshot,
    Topic,
    TopicPartition,
)
from restow.model.group_partitions import partition_of_group
from restow.plan.explain.groups import OFFSETS_TOPIC, group_lines, group_notes, groups_touched
from restow.snapshot.text import dumps, loads


def topic(name: str, *replicas: tuple[int, ...]) -> Topic:
    return Topic(
        name=name,
        partitions=tuple(Partition(number, each, each, each[0]) for number, each in enumerate(replicas)),
    )


def move(name: str, number: int, before: tuple[int, ...], after: tuple[int, ...]) -> Move:
    return Move(partition=TopicPartition(name, number), before=before, after=after)


def reading(name: str, *members: ReadingMember, protocol: str = "classic") -> ReadingGroup:
    return ReadingGroup(name=name, protocol=protocol, state="Stable", coordinator=1, members=members)


HERE = ReadingMember("m1", "a", (TopicPartition("t", 0), TopicPartition("t", 1)))
SNAPSHOT = Snapshot(
    cluster_id="c",
    taken_ms=0,
    controller=1,
    brokers=tuple(LiveBroker(id=number, host="h", port=1, rack="ab"[number % 2]) for number in range(4)),
    topics=(topic(OFFSETS_TOPIC, *[(1, 2)] * 10), topic("t", (0, 1), (2, 3), (1, 2))),
    groups=(
        reading("first", HERE),
        reading("second", ReadingMember("m2", None, (TopicPartition("t", 2),)), protocol="consumer"),
    ),
)


def test_leaders_and_racks_that_change_under_a_group_are_named() -> None:
    moves = [move("t", 0, (0, 1), (3, 1)), move("t", 1, (2, 3), (2, 1)), move("t", 2, (1, 2), (1, 0))]
    (found,) = groups_touched(SNAPSHOT, moves)
    assert (found.name, found.protocol) == ("first", "classic")
    assert found.leaders == (TopicPartition("t", 0),)
    assert found.leaves_rack == (TopicPartition("t", 0),)
    assert found.enters_rack == ()
    assert found.coordinator is None
    assert group_lines([found]) == [
        "leaders that move under groups: first 1",
        "reads that leave their consumer's rack: first 1",
    ]


def test_coordinators_move_with_the_offsets_topic() -> None:
    number = partition_of_group("second", 10)
    assert number != partition_of_group("first", 10)
    (found,) = groups_touched(SNAPSHOT, [move(OFFSETS_TOPIC, number, (1, 2), (2, 3))])
    assert (found.name, found.coordinator) == ("second", (1, 2))
    assert groups_touched(SNAPSHOT, [move(OFFSETS_TOPIC, number, (1, 2), (1, 3))]) == ()


def test_leader_that_is_not_the_first_replica_counts_as_it_is() -> None:
    led_by_second = SNAPSHOT.topics[1].partitions[0]._replace(leader=1)
    changed = replace(SNAPSHOT.topics[1], partitions=(led_by_second, *SNAPSHOT.topics[1].partitions[1:]))
    snapshot = replace(SNAPSHOT, topics=(SNAPSHOT.topics[0], changed))
    assert groups_touched(snapshot, [move("t", 0, (0, 1), (1, 3))]) == ()
    (found,) = groups_touched(snapshot, [move("t", 0, (0, 1), (0, 3))])
    assert found.enters_rack == found.leaders == (TopicPartition("t", 0),)


def test_plans_that_touch_no_group_say_nothing() -> None:
    assert group_notes(SNAPSHOT, []) == []
    assert group_notes(replace(SNAPSHOT, groups=()), [move("t", 0, (0, 1), (3, 1))]) == []


def test_snapshot_files_keep_groups() -> None:
    assert loads(dumps(SNAPSHOT)) == SNAPSHOT
    assert '"groups"' not in dumps(replace(SNAPSHOT, groups=()))
