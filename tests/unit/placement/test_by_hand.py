from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.errors import InvalidReplicaAssignment
from restow.placement import Broker, parse_by_hand
from tests.unit.placement.clusters import at_leisure

THREE = [Broker(number) for number in range(3)]


def test_parse_by_hand_reads_the_worked_example() -> None:
    assert parse_by_hand("0:1:2,1:2:0,2:0:1", THREE) == {0: [0, 1, 2], 1: [1, 2, 0], 2: [2, 0, 1]}


def test_parse_by_hand_ignores_spaces_around_ids() -> None:
    assert parse_by_hand(" 0 : 1 , 1 : 2 ") == {0: [0, 1], 1: [1, 2]}


def test_parse_by_hand_accepts_any_id_without_brokers() -> None:
    assert parse_by_hand("2147483647") == {0: [2147483647]}


def test_parse_by_hand_ignores_leading_zeros() -> None:
    assert parse_by_hand("007:1") == {0: [7, 1]}


def test_parse_by_hand_refuses_a_number_of_very_many_digits() -> None:
    with pytest.raises(InvalidReplicaAssignment, match="where a broker id should be"):
        parse_by_hand("9" * 5_000)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0:1,1:1", "Partition 1 names a broker more than once (1, 1)"),
        (
            "0:1,2",
            "Partition 1 has 1 replicas (2) while partition 0 has 2; give all partitions the same number.",
        ),
        ("0:1,1:7", "Partition 1 names unknown broker 7; there are 0, 1, 2."),
        ("", "Partition 0 is empty; write its broker ids with colons between, as in 0:1:2,1:2:0."),
        (",", "Partition 0 is empty"),
        ("0:1,,1:0", "Partition 1 is empty"),
        ("0:1,", "Partition 1 is empty"),
        ("a:b", "Partition 0 has 'a' where a broker id should be (0 to 2147483647)"),
        ("0:1,1:", "Partition 1 has '' where a broker id should be"),
        (":1", "Partition 0 has '' where a broker id should be"),
        ("-1:0", "Partition 0 has '-1' where a broker id should be"),
        ("1_0", "Partition 0 has '1_0' where a broker id should be"),
        ("0.5", "Partition 0 has '0.5' where a broker id should be"),
        ("²", "Partition 0 has '²' where a broker id should be"),
        ("2147483648", "Partition 0 has '2147483648' where a broker id should be"),
        ("1 2:0", "Partition 0 has '1 2' where a broker id should be"),
    ],
)
def test_parse_by_hand_refuses_what_kafka_refuses_or_misreads(text: str, sentence: str) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=re.escape(sentence)):
        parse_by_hand(text, THREE)


@at_leisure
@given(
    rows=st.integers(1, 5).flatmap(
        lambda replication_factor: st.lists(
            st.lists(
                st.integers(0, 2**31 - 1),
                min_size=replication_factor,
                max_size=replication_factor,
                unique=True,
            ),
            min_size=1,
            max_size=8,
        )
    )
)
def test_parse_by_hand_reads_what_was_written(rows: list[list[int]]) -> None:
    text = ",".join(":".join(map(str, replicas)) for replicas in rows)
    assert parse_by_hand(text) == dict(enumerate(rows))
