"""Our placement against Kafka's AdminUtils: the same replicas, and the same refusals."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.oracle import JavaError, Oracle
from restow.errors import InvalidPartitions, InvalidReplicationFactor, RackInformationMissing, RestowError
from restow.model import Broker
from restow.placement import place
from tests.oracle.cases import brokers, same_cases

pytestmark = pytest.mark.jvm

REFUSALS = {
    "InvalidPartitionsException": InvalidPartitions,
    "InvalidReplicationFactorException": InvalidReplicationFactor,
    "AdminOperationException": RackInformationMissing,
}


@same_cases
@given(
    where=brokers(),
    partitions=st.one_of(st.integers(1, 40), st.integers(-1, 200)),
    replication_factor=st.one_of(st.integers(1, 4), st.integers(-1, 21)),
    start_index=st.integers(0, 30),
    start_partition=st.integers(-1, 60),
)
@example(
    where=tuple(map(Broker, range(5))), partitions=10, replication_factor=3, start_index=0, start_partition=-1
)
def test_placement_and_refusals_equal_those_of_kafka(
    kafka: Oracle,
    where: tuple[Broker, ...],
    partitions: int,
    replication_factor: int,
    start_index: int,
    start_partition: int,
) -> None:
    question = {
        "partitions": partitions,
        "replication_factor": replication_factor,
        "start_index": start_index,
        "start_partition": start_partition,
    }
    kafkas = kafka.place(where, **question)
    if isinstance(kafkas, JavaError):
        with pytest.raises(RestowError) as refused:
            place(where, **question)
        assert type(refused.value) is REFUSALS[kafkas.name]
        return
    first = max(0, start_partition)
    rows = place(where, **question).tolist()
    assert {first + row: replicas for row, replicas in enumerate(rows)} == kafkas


@same_cases
@given(
    where=brokers(),
    partitions=st.integers(1, 40),
    replication_factor=st.integers(1, 4),
    start_index=st.integers(0, 30),
)
def test_placement_without_racks_equals_that_of_kafka(
    kafka: Oracle, where: tuple[Broker, ...], partitions: int, replication_factor: int, start_index: int
) -> None:
    replication_factor = min(replication_factor, len(where))
    bare = tuple(Broker(broker.id) for broker in where)
    question = {
        "partitions": partitions,
        "replication_factor": replication_factor,
        "start_index": start_index,
    }
    rows = place(where, **question, rack_mode="disabled").tolist()
    assert dict(enumerate(rows)) == kafka.place(bare, **question)
