"""Records of `__transaction_state` and end markers, byte for byte against Kafka's classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.cluster.transactions.records import (
    TransactionValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from restow.cluster.transactions.states import TransactionState
from restow.model import TopicPartition, by_topic
from restow.wire.end_markers import EndMarker, build_end_marker, end_marker_of
from tests.oracle.test_group_records import parsed, written

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.builds(
    TransactionValue,
    producer_id=INT64,
    producer_epoch=INT16,
    timeout_ms=INT32,
    state=st.sampled_from(TransactionState),
    partitions=st.frozensets(st.builds(TopicPartition, TEXT, st.integers(0, 2**31 - 1)), max_size=5),
    updated_ms=INT64,
    started_ms=INT64,
)
several = settings(max_examples=60, deadline=None)


@several
@given(name=TEXT)
def test_keys_equal_those_of_kafka(gateway: JavaGateway, name: str) -> None:
    data = encode_key(name)
    java = parsed(gateway, "TransactionLogKey", data, "transaction")
    assert java.transactionalId() == name
    assert written(gateway, java, 0) == data
    assert decode_key(data) == name


@several
@given(value=VALUES)
def test_values_equal_those_of_kafka(gateway: JavaGateway, value: TransactionValue) -> None:
    if value.state is TransactionState.EMPTY:
        value = replace(value, partitions=frozenset())
    data = encode_value(value)
    java = parsed(gateway, "TransactionLogValue", data, "transaction")
    assert (java.producerId(), java.producerEpoch(), java.transactionTimeoutMs()) == (
        value.producer_id,
        value.producer_epoch,
        value.timeout_ms,
    )
    assert java.transactionStatus() == value.state.number
    assert (java.transactionLastUpdateTimestampMs(), java.transactionStartTimestampMs()) == (
        value.updated_ms,
        value.started_ms,
    )
    partitions = java.transactionPartitions()
    found = {} if partitions is None else {each.topic(): list(each.partitionIds()) for each in partitions}
    assert found == by_topic(sorted(value.partitions))
    for version in (0, 1):
        again = written(gateway, java, version)
        assert decode_value(again) == value
        assert version or again == data


@several
@given(
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    marker=st.builds(EndMarker, st.booleans(), INT32),
)
def test_end_markers_equal_those_of_kafka(
    gateway: JavaGateway, producer_id: int, epoch: int, marker: EndMarker
) -> None:
    record = gateway.jvm.org.apache.kafka.common.record
    kind = record.ControlRecordType.COMMIT if marker.commits else record.ControlRecordType.ABORT
    end = record.EndTransactionMarker(kind, marker.coordinator_epoch)
    java = record.MemoryRecords.withEndTransactionMarker(0, 1234, -1, producer_id, epoch, end)
    data = bytes(java.buffer().array())[: java.sizeInBytes()]
    assert build_end_marker(producer_id, epoch, marker, 1234) == data
    assert end_marker_of(data) == marker
