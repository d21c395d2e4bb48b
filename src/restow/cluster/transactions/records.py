"""The records of `__transaction_state`, byte for byte as Kafka writes and reads them.

A key is its version and the transactional id. A value starts with its own version: 0 is written, and 1, the
flexible one of Kafka 4, can be read. A record without a value is a tombstone.
"""

from __future__ import annotations

import struct

from restow._frozen import frozen
from restow.cluster.groups.fields import FieldReader, InvalidGroupRecord, string
from restow.cluster.transactions.states import BY_NUMBER, TransactionState
from restow.model import TopicPartition, by_topic
from restow.wire.primitives import INT16, INT32

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1

_KEY_VERSION = 0
_VALUE_VERSION = 0
_FLEXIBLE_VERSION = 1
_PREVIOUS_PRODUCER_TAG = 0
_VALUE_HEAD = struct.Struct(">hqhib")
_TIMES = struct.Struct(">qq")


@frozen
class TransactionValue:
    """A transactional id's producer, state and partitions, as they are written."""

    producer_id: int
    producer_epoch: int
    last_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_EPOCH
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int
    started_ms: int = NO_TIME


def encode_key(transactional_id: str) -> bytes:
    return INT16.pack(_KEY_VERSION) + string(transactional_id)


def decode_key(data: bytes) -> str | None:
    """Return the transactional id; None for a key of another kind."""
    fields = FieldReader(data)
    if fields.int16() != _KEY_VERSION:
        return None
    transactional_id = fields.string()
    fields.end()
    return transactional_id


def encode_value(value: TransactionValue) -> bytes:
    """Encode as version 0, which every Kafka reads. It has no room for the last producer."""
    head = _VALUE_HEAD.pack(
        _VALUE_VERSION, value.producer_id, value.producer_epoch, value.timeout_ms, value.state.number
    )
    return head + _partitions(value) + _TIMES.pack(value.updated_ms, value.started_ms)


def _partitions(value: TransactionValue) -> bytes:
    """Encode the partitions: null in an empty transaction, as Kafka does."""
    if value.state is TransactionState.EMPTY:
        return INT32.pack(-1)
    topics = by_topic(sorted(value.partitions))
    parts = [INT32.pack(len(topics))]
    for topic, numbers in topics.items():
        parts += (string(topic), INT32.pack(len(numbers)), *map(INT32.pack, numbers))
    return b"".join(parts)


def decode_value(data: bytes) -> TransactionValue:
    """Decode a value of version 0 or 1. Raises InvalidGroupRecord."""
    fields = FieldReader(data)
    version = fields.int16()
    if not 0 <= version <= _FLEXIBLE_VERSION:
        raise InvalidGroupRecord(f"a value has version {version}, but only 0 and 1 are known")
    fields.flexible = version >= _FLEXIBLE_VERSION
    producer_id, producer_epoch, timeout_ms = fields.int64(), fields.int16(), fields.int32()
    number = fields.int8()
    if (state := BY_NUMBER.get(number)) is None:
        raise InvalidGroupRecord(f"there is no transaction state {number}")
    partitions = _read_partitions(fields)
    updated_ms, started_ms = fields.int64(), fields.int64()
    tagged = fields.structure_end()
    fields.end()
    previous = tagged.get(_PREVIOUS_PRODUCER_TAG)
    return TransactionValue(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_producer_id=NO_PRODUCER_ID if previous is None else FieldReader(previous).int64(),
        timeout_ms=timeout_ms,
        state=state,
        partitions=partitions,
        updated_ms=updated_ms,
        started_ms=started_ms,
    )


def _read_partitions(fields: FieldReader) -> frozenset[TopicPartition]:
    found: set[TopicPartition] = set()
    for _ in range(fields.nullable_count()):
        topic = fields.string()
        found.update(TopicPartition(topic, fields.int32()) for _ in range(fields.count()))
        fields.structure_end()
    return frozenset(found)
