"""State of idempotent producers: their last batches, to detect duplicates and gaps, and their transactions.

A producer numbers its records per partition. A batch that continues its last one is appended; one that equals
any of its last five is a duplicate, answered with the original offsets; anything else means that records are
missing. After a restart, the state comes from Kafka's `.snapshot` file (only the last batch of each producer)
and the later batches.

A transaction begins with its first batch, if the coordinator knows that this partition is part of it: the
leader asks before it appends (KIP-890). `Verification` is the time between: an end marker in that time
voids it, otherwise a late batch would begin a transaction that nobody ends.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from restow.cluster.log.errors import (
    CoordinatorFenced,
    InvalidCheckpoint,
    InvalidTransaction,
    OutOfOrderSequence,
    StaleProducerEpoch,
)
from restow.cluster.log.transactions import EndedTransaction, OpenTransactions
from restow.wire.batches import NO_SEQUENCE, TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.wire.batches import BatchHeader
    from restow.wire.end_markers import EndMarker

REMEMBERED_BATCHES = 5

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_COORDINATOR = -1
_NO_TRANSACTION = -1
_NO_OFFSET = -1


class AppendedBatch(NamedTuple):
    """A producer's batch, as far as needed to detect a duplicate and answer it."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


_NO_BATCH = AppendedBatch(NO_SEQUENCE, NO_SEQUENCE, _NO_OFFSET, _NO_OFFSET, -1)


class Producer:
    """One producer id: its current epoch and the last batches of that epoch."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "first_offset", "timestamp")

    def __init__(self, epoch: int, batches: tuple[AppendedBatch, ...] = ()) -> None:
        self.epoch = epoch
        self.batches = deque(batches, REMEMBERED_BATCHES)
        self.coordinator_epoch = _NO_COORDINATOR
        """Epoch of the coordinator that ended its last transaction."""
        self.first_offset = _NO_TRANSACTION
        """Where its open transaction begins."""
        self.timestamp = -1
        """Of its last batch or marker."""

    @property
    def is_in_transaction(self) -> bool:
        return self.first_offset != _NO_TRANSACTION

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Verification:
    """The question to a coordinator whether a producer may begin a transaction here."""

    __slots__ = ("epoch", "lowest_sequence")

    def __init__(self, epoch: int, lowest_sequence: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence


class ProducerStates:
    """All producers of one log."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        self._verifications: dict[int, Verification] = {}
        self.transactions = OpenTransactions()

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[int, Producer]]:
        """Iterate over producer ids and their states."""
        return iter(self._producers.items())

    def clear(self) -> None:
        """Forget all."""
        self._producers = {}
        self._verifications = {}
        self.transactions = OpenTransactions()

    # Checks before an append

    def repetition_of(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the batch that this one duplicates, or None if it may be appended. Raises otherwise."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch, base_sequence = header.producer_epoch, header.base_sequence
        self._check_epoch(producer, header)
        if epoch > producer.epoch:
            expected = 0
        else:
            last_sequence = header.last_sequence
            for batch in producer.batches:
                if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
                    return batch
            expected = (producer.last_sequence + 1) & 0x7FFFFFFF
        if base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} (epoch {epoch}) goes on with sequence {base_sequence} "
                f"where {expected} was to come"
            )
        return None

    def check_transaction(self, header: BatchHeader, verification: Verification | None) -> None:
        """Raise InvalidTransaction unless the batch continues a transaction, begins one, or belongs to none.

        A batch that begins one needs a verification that is still valid.
        """
        producer = self._producers.get(header.producer_id)
        if not header.attributes & TRANSACTIONAL_BIT:
            if producer is not None and producer.is_in_transaction:
                raise InvalidTransaction(
                    f"producer {header.producer_id} has an open transaction, and this batch is not part of it"
                )
            return
        if self.has_transaction(header):
            return
        known = self._verifications.get(header.producer_id)
        if verification is None or verification is not known:
            raise InvalidTransaction(
                f"the batch of producer {header.producer_id} is not part of a transaction that was begun"
            )
        if producer is None and header.base_sequence > known.lowest_sequence:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} begins with sequence {header.base_sequence}, "
                f"but {known.lowest_sequence} came first and is to be appended"
            )

    def check_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        """Raise if a newer producer or coordinator has written already."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return
        self._check_epoch(producer, header)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise CoordinatorFenced(
                f"the coordinator of producer {header.producer_id} has epoch {marker.coordinator_epoch}, "
                f"but {producer.coordinator_epoch} has written already"
            )

    def check_epoch(self, header: BatchHeader) -> None:
        """Raise StaleProducerEpoch if a newer producer has written already."""
        if (producer := self._producers.get(header.producer_id)) is not None:
            self._check_epoch(producer, header)

    def _check_epoch(self, producer: Producer, header: BatchHeader) -> None:
        if header.producer_epoch < producer.epoch:
            raise StaleProducerEpoch(
                f"producer {header.producer_id} has epoch {header.producer_epoch}, "
                f"but {producer.epoch} has written already"
            )

    # Transactions

    def has_transaction(self, header: BatchHeader) -> bool:
        """Return whether the batch continues an open transaction."""
        producer = self._producers.get(header.producer_id)
        return producer is not None and producer.is_in_transaction and producer.epoch == header.producer_epoch

    def begin_verification(self, header: BatchHeader) -> Verification:
        """Return the producer's verification; several batches may wait for the same one."""
        known = self._verifications.get(header.producer_id)
        if known is None or known.epoch < header.producer_epoch:
            known = Verification(header.producer_epoch, header.base_sequence)
            self._verifications[header.producer_id] = known
        elif known.epoch == header.producer_epoch:
            known.lowest_sequence = min(known.lowest_sequence, header.base_sequence)
        return known

    # Appended batches

    def note(self, header: BatchHeader, marker: EndMarker | None = None) -> EndedTransaction | None:
        """Record an appended batch. Return the transaction that its marker has ended, if there was one.

        Without a sequence, only the epoch counts.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.timestamp = header.max_timestamp
        if marker is not None:
            return self._end(producer, header, marker)
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
        if header.attributes & TRANSACTIONAL_BIT and not producer.is_in_transaction:
            producer.first_offset = header.base_offset
            self.transactions.begin(header.producer_id, header.base_offset)
            self._verifications.pop(header.producer_id, None)
        return None

    def _end(self, producer: Producer, header: BatchHeader, marker: EndMarker) -> EndedTransaction | None:
        self._verifications.pop(header.producer_id, None)
        producer.coordinator_epoch = marker.coordinator_epoch
        if not producer.is_in_transaction:
            return None
        first_offset, producer.first_offset = producer.first_offset, _NO_TRANSACTION
        return EndedTransaction(header.producer_id, first_offset, header.last_offset, not marker.commits)

    def is_last_of(self, header: BatchHeader) -> bool:
        """Return whether compaction must keep the batch, if only its header.

        That is a producer's last batch, or if it has none, the marker that says its epoch.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return False
        if producer.batches:
            return producer.batches[-1].last_offset == header.last_offset
        return header.is_control and producer.epoch == header.producer_epoch

    def expire(self, before_ms: int) -> None:
        """Forget producers that wrote nothing since, unless they have an open transaction."""
        self._producers = {
            identity: producer
            for identity, producer in self._producers.items()
            if producer.is_in_transaction or producer.timestamp >= before_ms
        }

    def encode(self) -> bytes:
        """Encode as a `.snapshot` file."""
        entries = []
        for identity, producer in self._producers.items():
            last = producer.batches[-1] if producer.batches else _NO_BATCH
            entries.append(
                _ENTRY.pack(
                    identity,
                    producer.epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.last_offset - last.base_offset,
                    producer.timestamp,
                    producer.coordinator_epoch,
                    producer.first_offset,
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
        self.clear()
        for entry in _ENTRY.iter_unpack(body[_COUNT.size :]):
            identity, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first = entry
            batches: tuple[AppendedBatch, ...] = ()
            if last_offset != _NO_OFFSET:
                base_sequence = (last_sequence - delta) & 0x7FFFFFFF
                last = AppendedBatch(
                    base_sequence, last_sequence, last_offset - delta, last_offset, timestamp
                )
                batches = (last,)
            producer = self._producers[identity] = Producer(epoch, batches)
            producer.timestamp = timestamp
            producer.coordinator_epoch = coordinator_epoch
            producer.first_offset = first
        in_transaction = [(it.first_offset, key) for key, it in self if it.is_in_transaction]
        for first_offset, identity in sorted(in_transaction):
            self.transactions.begin(identity, first_offset)
