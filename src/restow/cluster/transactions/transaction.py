"""One transactional id: its producer, its state, and what may follow.

A request decides on the next state (`prepare_…`), which is pending until it is written; `complete` then takes
it over. While a state is pending, other requests are told to come again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from restow.cluster.transactions.records import NO_EPOCH, NO_PRODUCER_ID, NO_TIME, TransactionValue
from restow.cluster.transactions.states import TransactionState
from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.model import TopicPartition

LARGEST_EPOCH = 2**15 - 1
_S = TransactionState


class TransactionRefused(Exception):
    """A request that does not fit the transaction's state; has the error code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.message)
        self.code = code


class IllegalTransactionChange(RestowError):
    """A transition that the table does not allow: a defect here, never a client's fault."""


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """What a producer says it is."""

    producer_id: int
    epoch: int


class Transaction:
    """The transactions of one transactional id, one after another."""

    def __init__(self, transactional_id: str, value: TransactionValue) -> None:
        self.id = transactional_id
        self.value = value
        self.pending: TransactionState | None = None
        self._has_failed_fence = False
        """Whether a raised epoch could not be written; it is not raised again then."""

    @classmethod
    def new(cls, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
        """Return a transactional id that nobody has used yet."""
        return cls(
            transactional_id,
            TransactionValue(
                producer_id=producer_id,
                producer_epoch=NO_EPOCH,
                timeout_ms=timeout_ms,
                state=_S.EMPTY,
                updated_ms=now_ms,
            ),
        )

    @property
    def state(self) -> TransactionState:
        return self.value.state

    @property
    def is_epoch_exhausted(self) -> bool:
        return _is_exhausted(self.value.producer_epoch)

    # What a producer may ask

    def check_producer(self, producer: ProducerIdAndEpoch) -> None:
        """Raise TransactionRefused unless this is the present producer."""
        if producer.producer_id != self.value.producer_id:
            raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if producer.epoch != self.value.producer_epoch:
            raise TransactionRefused(ErrorCode.PRODUCER_FENCED)

    def check_not_pending(self) -> None:
        if self.pending is not None:
            raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)

    def check_may_begin(self, expected: ProducerIdAndEpoch | None) -> None:
        """Raise TransactionRefused unless a producer may begin anew.

        One that says what it was must be the present one, or the last one of an exhausted epoch.
        """
        self.check_not_pending()
        value = self.value
        if (
            expected is not None
            and value.producer_epoch != NO_EPOCH
            and expected.producer_id != value.producer_id
            and not (expected.producer_id == value.last_producer_id and _is_exhausted(expected.epoch))
        ):
            raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
        if self.state.is_ending:
            raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)

    # Next states

    def prepare_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionValue:
        """Raise the epoch for a producer that begins anew; a repeated request gets the same epoch again."""
        value = self.value
        epoch, last_epoch = value.producer_epoch + 1, value.producer_epoch
        if expected_epoch is None:
            last_epoch = NO_EPOCH
        elif value.producer_epoch != NO_EPOCH and expected_epoch != value.producer_epoch:
            if expected_epoch != value.last_producer_epoch:
                raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
            epoch, last_epoch = value.producer_epoch, value.last_producer_epoch
        return self._prepare(
            replace(
                value,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                timeout_ms=timeout_ms,
                state=_S.EMPTY,
                partitions=frozenset(),
                updated_ms=now_ms,
                started_ms=NO_TIME,
            )
        )

    def prepare_producer(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, remember_epoch: bool
    ) -> TransactionValue:
        """Go on with a new producer id, because the epochs of the old one are used up."""
        value = self.value
        return self._prepare(
            TransactionValue(
                producer_id=producer_id,
                producer_epoch=0,
                last_producer_id=value.producer_id,
                last_producer_epoch=value.producer_epoch if remember_epoch else NO_EPOCH,
                timeout_ms=timeout_ms,
                state=_S.EMPTY,
                updated_ms=now_ms,
            )
        )

    def prepare_partitions(self, added: Iterable[TopicPartition], now_ms: int) -> TransactionValue:
        """Add partitions, which begins a transaction if none is open."""
        value = self.value
        return self._prepare(
            replace(
                value,
                state=_S.ONGOING,
                partitions=value.partitions.union(added),
                updated_ms=now_ms,
                started_ms=value.started_ms if self.state is _S.ONGOING else now_ms,
            )
        )

    def prepare_end(self, now_ms: int, *, commits: bool) -> TransactionValue:
        state = _S.PREPARE_COMMIT if commits else _S.PREPARE_ABORT
        return self._prepare(replace(self.value, state=state, updated_ms=now_ms))

    def prepare_complete(self, now_ms: int) -> TransactionValue:
        """End a transaction for good. The value is made now, and written when all markers are."""
        state = _S.COMPLETE_COMMIT if self.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT
        self._has_failed_fence = False
        return self._prepare(replace(self.value, state=state, partitions=frozenset(), updated_ms=now_ms))

    def prepare_dead(self) -> TransactionValue:
        return self._prepare(replace(self.value, state=_S.DEAD, partitions=frozenset()))

    def fence(self) -> None:
        """Raise the epoch of an open transaction, which is to be aborted: its producer may write no more.

        If that was not written the last time, the epoch is high enough already.
        """
        value = self.value
        if not self.state.may_become(_S.PREPARE_EPOCH_FENCE) or value.producer_epoch >= LARGEST_EPOCH:
            raise IllegalTransactionChange(
                f"transactional id {self.id} cannot be fenced in state {self.state}"
            )
        epoch = value.producer_epoch if self._has_failed_fence else value.producer_epoch + 1
        self.value = replace(value, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
        self._has_failed_fence = True  # until the abort is written

    def _prepare(self, value: TransactionValue) -> TransactionValue:
        if self.pending is not None or not self.state.may_become(value.state):
            raise IllegalTransactionChange(
                f"transactional id {self.id} cannot go from {self.state.label} to {value.state.label} "
                f"while {self.pending} is pending"
            )
        self.pending = value.state
        return value

    def complete(self, value: TransactionValue) -> None:
        """Take over the pending state, which is written now.

        A producer that begins anew writes no start, but the one of the last transaction is still told, as in
        Kafka.
        """
        started_ms = self.value.started_ms
        self.value = replace(value, started_ms=started_ms) if value.state is _S.EMPTY else value
        self.pending = None
        if value.state is _S.PREPARE_ABORT:
            self._has_failed_fence = False

    def give_up(self) -> None:
        """Drop the pending state, which could not be written."""
        self.pending = None

    def without(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions that have their marker."""
        self.value = replace(self.value, partitions=self.value.partitions.difference(partitions))


def _is_exhausted(epoch: int) -> bool:
    """Return whether no producer may get a higher epoch: the last one is kept for fencing."""
    return epoch >= LARGEST_EPOCH - 1


__all__ = [
    "LARGEST_EPOCH",
    "NO_PRODUCER_ID",
    "IllegalTransactionChange",
    "ProducerIdAndEpoch",
    "Transaction",
    "TransactionRefused",
]
