"""State of idempotent producers: their last batches, to detect duplicates and gaps.

A producer numbers its records per partition. A batch that continues its last one is appended; one that equals
any of its last five is a duplicate, answered with the original offsets; anything else means that records are
missing. After a restart, the state comes from Kafka's `.snapshot` file (only the last batch of each producer)
and the later batches.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from restow.cluster.log.errors import InvalidCheckpoint, OutOfOrderSequence, StaleProducerEpoch
from restow.wire.batches import NO_SEQUENCE

if TYPE_CHECKING:
    from restow.wire.batches import BatchHeader

REMEMBERED_BATCHES = 5

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_COORDINATOR = -1
_NO_TRANSACTION = -1


class AppendedBatch(NamedTuple):
    """A producer's batch, as far as needed to detect a duplicate and answer it."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer id: its current epoch and the last batches of that epoch."""

    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int, batches: tuple[AppendedBatch, ...] = ()) -> None:
        self.epoch = epoch
        self.batches = deque(batches, REMEMBERED_BATCHES)


class ProducerStates:
    """All producers of one log."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def clear(self) -> None:
        """Forget all."""
        self._producers = {}

    def repetition_of(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the batch that this one duplicates, or None if it may be appended. Raises otherwise."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch, base_sequence = header.producer_epoch, header.base_sequence
        if epoch < producer.epoch:
            raise StaleProducerEpoch(
                f"producer {header.producer_id} has epoch {epoch}, but {producer.epoch} has written already"
            )
        if epoch > producer.epoch:
            expected = 0
        elif not producer.batches:
            return None
        else:
            last_sequence = header.last_sequence
            for batch in producer.batches:
                if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
                    return batch
            expected = (producer.batches[-1].last_sequence + 1) & 0x7FFFFFFF
        if base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} (epoch {epoch}) goes on with sequence {base_sequence} "
                f"where {expected} was to come"
            )
        return None

    def note(self, header: BatchHeader) -> None:
        """Record an appended batch. Without a sequence, only the epoch counts."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        if header.base_sequence != NO_SEQUENCE:
            producer.batches.append(
                AppendedBatch(
                    header.base_sequence,
                    header.last_sequence,
                    header.base_offset,
                    header.last_offset,
                    header.max_timestamp,
                )
            )

    def last_offset_of(self, producer_id: int) -> int | None:
        """Return a producer's last offset: compaction keeps that batch, if only its header."""
        producer = self._producers.get(producer_id)
        return producer.batches[-1].last_offset if producer and producer.batches else None

    def expire(self, before_ms: int) -> None:
        """Forget producers that wrote nothing since."""
        self._producers = {
            identity: producer
            for identity, producer in self._producers.items()
            if producer.batches and producer.batches[-1].timestamp >= before_ms
        }

    def encode(self) -> bytes:
        """Encode as a `.snapshot` file."""
        entries = []
        for identity, producer in self._producers.items():
            if not producer.batches:
                continue
            last = producer.batches[-1]
            entries.append(
                _ENTRY.pack(
                    identity,
                    producer.epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.last_offset - last.base_offset,
                    last.timestamp,
                    _NO_COORDINATOR,
                    _NO_TRANSACTION,
                )
            )
        body = _COUNT.pack(len(entries)) + b"".join(entries)
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, google_crc32c.value(body)) + body

    def decode(self, data: bytes) -> None:
        """Load a `.snapshot` file, or raise InvalidCheckpoint."""
        head, body = data[: _SNAPSHOT_HEAD.size], data[_SNAPSHOT_HEAD.size :]
        if len(head) < _SNAPSHOT_HEAD.size or len(body) < _COUNT.size:
            raise InvalidCheckpoint(f"a producer snapshot cannot have only {len(data)} bytes")
        version, crc = _SNAPSHOT_HEAD.unpack(head)
        if version != _SNAPSHOT_VERSION or crc != google_crc32c.value(body):
            raise InvalidCheckpoint(
                f"a producer snapshot of version {version} has not the CRC it should have"
            )
        (count,) = _COUNT.unpack_from(body)
        if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
            raise InvalidCheckpoint(f"a producer snapshot of {count} entries cannot have {len(body)} bytes")
        self._producers = {}
        for entry in _ENTRY.iter_unpack(body[_COUNT.size :]):
            identity, epoch, last_sequence, last_offset, delta, timestamp, _, _ = entry
            base_sequence = (last_sequence - delta) & 0x7FFFFFFF
            last = AppendedBatch(base_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
            self._producers[identity] = Producer(epoch, (last,))
