"""Answers of the transaction coordinator, independent of protocol versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from restow._frozen import frozen
from restow.cluster.transactions.records import NO_EPOCH, NO_PRODUCER_ID
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import TopicPartition


class InitReply(NamedTuple):
    """A producer's id and epoch, or the error."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


@frozen
class TransactionDescription:
    """A description of a transactional id. With an error, the rest is empty."""

    error: ErrorCode = ErrorCode.NONE
    transactional_id: str
    state: str = ""
    timeout_ms: int = 0
    started_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: tuple[TopicPartition, ...] = ()


class TransactionListing(NamedTuple):
    """One entry in the list of transactional ids."""

    transactional_id: str
    producer_id: int
    state: str


@frozen
class TransactionFilter:
    """Which transactional ids to list; empty sets and a negative duration stand for all."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1


class TransactionList(NamedTuple):
    """The transactional ids coordinated here; with an error, more are still loading."""

    error: ErrorCode
    unknown_states: tuple[str, ...]
    transactions: tuple[TransactionListing, ...]


@frozen
class EndOfTransaction:
    """What leaders are told to write into the partitions of a transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commits: bool


class MarkerSender(Protocol):
    """Sends end markers to the leaders of partitions."""

    async def send(
        self, end: EndOfTransaction, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return an error code for each partition; NONE also for one that no longer exists."""
