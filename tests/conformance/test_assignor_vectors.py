"""Our assignors against recorded results of Apache Kafka 3.9.1."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from restow.assignors import Member, TopicPartition, assign
from tests.judge import Group, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parent / "vectors"
RECORDED_ROUNDS = {"range": 400, "roundrobin": 400, "sticky": 1404, "cooperative-sticky": 1355}


@pytest.mark.parametrize("name", RECORDED_ROUNDS)
def test_assignor_is_as_good_as_the_recorded_result(name: str) -> None:
    rounds = 0
    for where, group, kafkas in recorded(name):
        ours = assign(name, **group.question())
        assert judge(name, group, ours, kafkas) == [], where
        rounds += 1
    assert rounds == RECORDED_ROUNDS[name]


@pytest.mark.parametrize("name", RECORDED_ROUNDS)
def test_judge_accepts_the_recorded_result(name: str) -> None:
    for where, group, kafkas in recorded(name):
        assert judge(name, group, kafkas, kafkas) == [], where


def recorded(name: str) -> Iterator[tuple[str, Group, dict[str, list[TopicPartition]]]]:
    """Yield every round of every recorded group, with its position."""
    path = VECTORS / f"{name.replace('-', '_')}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            case = json.loads(line)
            racks = case["partition_racks"]
            partitions = {topic: len(per_partition) for topic, per_partition in racks.items()}
            for turn, round_ in enumerate(case.get("rounds", [case]), 1):
                members = tuple(member(fields) for fields in round_["members"])
                group = Group(partitions=partitions, members=members, partition_racks=racks)
                answer = {id_: topic_partitions(given) for id_, given in round_["assignment"].items()}
                yield f"{path.name}:{number} round {turn}", group, answer


def member(fields: dict[str, Any]) -> Member:
    owned = tuple(topic_partitions(fields.pop("owned", ())))
    return Member(**{**fields, "topics": tuple(fields["topics"]), "owned": owned})


def topic_partitions(pairs: list[list[Any]]) -> list[TopicPartition]:
    return [TopicPartition(*pair) for pair in pairs]
