"""Snapshot files, and the differences of two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.errors import InvalidDocument
from restow.model import Copy, LogDir, Snapshot, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.snapshot.differences import differences
from restow.snapshot.text import dumps, loads
from tests.unit.plan.clusters import snapshot


def _rich() -> Snapshot:
    """Return a snapshot with every field set."""
    plain = snapshot({"t": [(1, 2), (2, 3)], "ü\n": [(1,)]}, brokers=range(1, 4))
    topic = plain.topics[0]
    moving = topic.partitions[0]._replace(
        replicas=(1, 3, 2),
        adding=(3,),
        removing=(2,),
        copies=(*topic.partitions[0].copies, Copy(broker=1, log_dir="/e", size_bytes=5, future=True)),
    )
    offline = topic.partitions[1]._replace(leader=None, isr=(3,))
    topic = replace(topic, id="some-id", configs={"a": "b"}, partitions=(moving, offline))
    broker = replace(
        plain.brokers[0],
        rack="r",
        configs={"x": "1"},
        log_dirs=(LogDir(path="/d", failed=True), LogDir(path="/e", cordoned=True)),
    )
    return replace(
        plain,
        brokers=(broker, *plain.brokers[1:]),
        topics=(topic, plain.topics[1]),
        default_configs={"y": "2"},
        unanswered=(3,),
        hidden_topics=("secret",),
        denied=("DESCRIBE_CONFIGS on the cluster",),
        controller=None,
    )


def test_snapshot_survives_its_file() -> None:
    assert loads(dumps(_rich())) == _rich()


def test_loads_reads_files_from_before_cordons_and_hidden_topics() -> None:
    text = dumps(replace(_rich(), hidden_topics=(), denied=()))
    for added in (', "cordoned": false', ', "cordoned": true', '"hidden_topics": [],\n', '"denied": [],\n'):
        assert added in text
        text = text.replace(added, "")
    assert loads(text).brokers[0].log_dirs == (LogDir(path="/d", failed=True), LogDir(path="/e"))


def test_differences_name_a_log_dir_that_was_cordoned() -> None:
    before = snapshot({"t": [(1, 2)]}, brokers=(1, 2))
    cordoned = replace(before.brokers[0], log_dirs=(replace(before.brokers[0].log_dirs[0], cordoned=True),))
    after = replace(before, brokers=(cordoned, before.brokers[1]))
    assert differences(before, after) == ("broker 1, /d: works → cordoned",)


def test_partition_is_found_by_its_number_where_others_are_missing() -> None:
    """Brokers forget the partitions of a topic that is being deleted one by one."""
    plain = snapshot({"t": [(1, 2), (2, 3), (3, 1)]}, brokers=range(1, 4))
    (topic,) = plain.topics
    gap = replace(plain, topics=(replace(topic, partitions=(topic.partitions[0], topic.partitions[2])),))
    found = [gap.partition(TopicPartition("t", number)) for number in range(4)]
    assert [each and each.replicas for each in found] == [(1, 2), None, (3, 1), None]
    assert loads(dumps(gap)) == gap
    assert differences(plain, gap) == ("topic t, partitions: 3 → 2",)
    move = plan_from_targets(
        gap, [Target(partition=TopicPartition("t", 2), replicas=(3, 2))], created_ms=0
    ).moves[0]
    assert (move.partition.partition, move.before) == (2, (3, 1))


def test_file_has_one_partition_per_line() -> None:
    lines = dumps(_rich()).splitlines()
    assert sum('"replicas"' in line for line in lines) == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("{}", "not a snapshot"),
        ('{"restow_snapshot": 9}', "format 9"),
        ('{"restow_snapshot": 1}', "it lacks 'cluster_id'"),
        (dumps(_rich()).replace('"number": 0', '"number": 7', 1), "not in the order of their numbers"),
        (dumps(_rich()).replace('"port"', '"harbour"', 1), "damaged"),
    ],
)
def test_loads_refuses_other_documents(text: str, complaint: str) -> None:
    with pytest.raises(InvalidDocument, match=complaint):
        loads(text, "now.json")


def test_differences_ignore_sizes() -> None:
    before = snapshot({"t": [(1, 2)]})
    assert differences(before, snapshot({"t": [(1, 2)]}, size=5, used={1: 77})) == ()


def test_differences_name_each_change() -> None:
    before = snapshot({"t": [(1, 2), (2, 3)], "old": [(1, 2)]}, brokers=range(1, 4))
    after = snapshot({"t": [(1, 3), (2, 3), (1, 2)], "new": [(1, 2)]}, brokers=range(2, 5))
    topic = replace(after.topic["t"], configs={"k": "v"})
    after = replace(after, topics=(after.topic["new"], topic))
    assert differences(before, after) == (
        "controller: 1 → 2",
        "broker 1: gone",
        "broker 4: came",
        "topic new: made",
        "topic old: deleted",
        "topic t, partitions: 2 → 3",
        "topic t, k: not set → v",
        "t-0, replicas: [1, 2] → [1, 3]",
        "t-0, in sync: [1, 2] → [1, 3]",
    )


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"replicas": [1, 3, 2]', '"replicas": [1, 1]', r"\[1, 1\] names a broker twice"),
        ('"replicas": [1, 3, 2]', '"replicas": []', "t-0 has no replicas"),
        ('"leader": 1', '"leader": "1"', "'1' is not a whole number"),
        ('"isr": [3]', '"isr": [3, 9]', r"broker 9 is none of the replicas \[2, 3\] of t-1"),
        ('"port": 1', '"port": 70000', "70000 is not between 0 and 65535"),
        ('"id": 2,', '"id": 1,', "broker 1 is there twice"),
        ('"cluster_id": "here"', '"cluster_id": null', "None is not a text"),
        ('"/d", 1000000000,', '"/d", NaN,', "is not a broker, a log dir"),
        ('"/d", 1000000000,', '"/d", -1,', "a number that no replica can have"),
        ('"taken_ms": 0', '"taken_ms": Infinity', "inf is not a whole number"),
    ],
)
def test_loads_refuses_values_that_no_cluster_can_have(old: str, new: str, complaint: str) -> None:
    whole = dumps(_rich())
    assert old in whole
    with pytest.raises(InvalidDocument, match=complaint):
        loads(whole.replace(old, new, 1), "now.json")
