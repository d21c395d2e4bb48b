"""Our uniform and range against recorded results of the assignors in Kafka 4.3.1's brokers."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from restow.assignors import assign
from tests.conformance.test_assignor_vectors import VECTORS, member, topic_partitions
from tests.judge import Group, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.assignors import TopicPartition

RECORDED_ROUNDS = {"uniform": 900, "range": 300}


@pytest.mark.parametrize("name", RECORDED_ROUNDS)
def test_server_assignor_is_as_good_as_the_recorded_result(name: str) -> None:
    rounds = 0
    for where, group, kafkas in recorded(name):
        assert judge(name, group, assign(name, **group.question()), kafkas) == [], where
        rounds += 1
    assert rounds == RECORDED_ROUNDS[name]


def recorded(name: str) -> Iterator[tuple[str, Group, dict[str, list[TopicPartition]]]]:
    """Yield every round of every recorded group, with its position."""
    path = VECTORS / f"server_{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            case = json.loads(line)
            for turn, round_ in enumerate(case["rounds"], 1):
                members = tuple(member(fields) for fields in round_["members"])
                group = Group(partitions=case["partitions"], members=members)
                answer = {id_: topic_partitions(given) for id_, given in round_["assignment"].items()}
                yield f"{path.name}:{number} round {turn}", group, answer
