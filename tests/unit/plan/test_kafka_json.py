"""Kafka's JSON files: what is read, what is refused and in which words, and a round trip."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.model import TopicPartition
from restow.plan.files.kafka_json import (
    InvalidReassignment,
    check_reassignment,
    format_reassignment,
    parse_reassignment,
    parse_topics,
)
from restow.plan.pin import Target


def document(*entries: dict[str, object], **more: object) -> str:
    return json.dumps({"version": 1, "partitions": entries, **more})


def entry(
    topic: object = "t", partition: object = 0, replicas: object = (1, 2), **more: object
) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **more}


def test_parse_reassignment_keeps_the_order_of_the_file() -> None:
    text = document(entry(partition=3), entry(partition=1, replicas=[4], log_dirs=["/d"]))
    assert parse_reassignment(text) == (
        Target(partition=TopicPartition("t", 3), replicas=(1, 2)),
        Target(partition=TopicPartition("t", 1), replicas=(4,), log_dirs=("/d",)),
    )


def test_parse_reassignment_accepts_a_missing_version_and_unknown_fields() -> None:
    assert parse_reassignment('{"partitions": [], "colour": "red"}') == ()
    assert parse_topics('{"topics": [{"topic": "a", "why": 1}]}') == ("a",)


@pytest.mark.parametrize(
    ("text", "ours", "kafkas"),
    [
        ("{nope", "is not JSON", "The input string is not a valid JSON"),
        ("", "is not JSON", "The input string is not a valid JSON"),
        ("[]", "expected an object", "Expected"),
        (document(version=2), "only version 1", "Not supported version field value 2"),
        (document(version="1"), "version: expected a whole number", "Expected"),
        (
            document({"topic": "t", "replicas": [1]}),
            r"partitions\[0\] has no partition",
            "No such field exists: `partition`",
        ),
        (document(entry(replicas=["1"])), r"partitions\[0\].replicas: expected a whole number", "Expected"),
        (document(entry(partition=True)), "partition: expected a whole number, found true", "Expected"),
        (document(entry(topic=5)), "topic: expected a string, found 5", "Expected"),
        (
            document(entry(log_dirs=["any"])),
            "2 replicas but 1 log dirs",
            r"Size of replicas list \[1, 2\] is different from size of log dirs list \[any\] for .* t-0",
        ),
    ],
)
def test_parse_reassignment_refuses_an_invalid_file(text: str, ours: str, kafkas: str) -> None:
    with pytest.raises(InvalidReassignment, match=ours) as caught:
        parse_reassignment(text, "file.json")
    assert str(caught.value).startswith("file.json")
    assert re.match(kafkas, caught.value.kafka_says)


@pytest.mark.parametrize(
    ("entries", "kafkas"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([entry(replicas=[])], "Partition replica list cannot be empty"),
        ([entry(), entry()], "Partition reassignment contains duplicate topic partitions: t-0"),
        (
            [entry(replicas=[1, 1, 2, 2]), entry(partition=1, replicas=[3, 3])],
            (
                "Partition replica lists may not contain duplicate entries: "
                "t-0 contains multiple entries for 1,2. t-1 contains multiple entries for 3"
            ),
        ),
    ],
)
def test_check_reassignment_refuses_what_kafka_refuses(entries: list[dict[str, object]], kafkas: str) -> None:
    targets = parse_reassignment(document(*entries))
    with pytest.raises(InvalidReassignment) as caught:
        check_reassignment(targets)
    assert caught.value.kafka_says == kafkas


def test_parse_topics_returns_each_topic_once() -> None:
    assert parse_topics('{"topics": [{"topic": "b"}, {"topic": "a"}], "version": 1}') == ("b", "a")
    with pytest.raises(InvalidReassignment) as caught:
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "b"}, {"topic": "a"}], "version": 1}')
    assert caught.value.kafka_says == "List of topics to reassign contains duplicate entries: [a]"


def test_format_reassignment_writes_as_kafka_does() -> None:
    name = TopicPartition("t", 0)
    assert format_reassignment({name: (1, 2)}, {(name, 2): "/d"}) == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","/d"]}]}'
    )


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.text(min_size=1, max_size=5), st.integers(0, 9)),
        st.lists(st.integers(0, 9), min_size=1, unique=True).map(tuple),
    )
)
def test_format_and_parse_are_a_round_trip(replicas: dict[TopicPartition, tuple[int, ...]]) -> None:
    found = parse_reassignment(format_reassignment(replicas))
    assert {each.partition: each.replicas for each in found} == replicas
