"""The transaction coordinator of one broker.

It manages the transactional ids of those `__transaction_state` partitions that its broker leads: `load` and
`unload` follow the leadership. A state is written before anybody is told of it. When the end of a transaction
is written, its markers go to the leaders of its partitions, and then the end is complete.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.groups.journal import COORDINATOR_ERRORS
from restow.cluster.transactions.describing import describe, list_all
from restow.cluster.transactions.ending import Endings
from restow.cluster.transactions.records import encode_key, encode_value
from restow.cluster.transactions.requests import InitReply, TransactionDescription, TransactionList
from restow.cluster.transactions.shard import TransactionShard
from restow.cluster.transactions.states import TransactionState
from restow.cluster.transactions.transaction import Transaction, TransactionRefused
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from restow.cluster.groups.journal import RecordJournal
    from restow.cluster.tasks import Tasks
    from restow.cluster.transactions.config import TransactionConfig
    from restow.cluster.transactions.records import TransactionValue
    from restow.cluster.transactions.requests import MarkerSender, TransactionFilter
    from restow.cluster.transactions.transaction import ProducerIdAndEpoch
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer

log = logging.getLogger(__name__)

_S = TransactionState
_LONGEST_ID_BYTES = 32_767
_WRITE_ERRORS = COORDINATOR_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class TransactionCoordinator:
    """Transactional ids and their transactions. No client request raises."""

    def __init__(
        self,
        *,
        clock: Clock,
        partition_for: Callable[[str], int],
        journal: RecordJournal,
        config: TransactionConfig,
        new_producer_id: Callable[[], Awaitable[int]],
        markers: MarkerSender,
        tasks: Tasks,
    ) -> None:
        self._clock = clock
        self._partition_for = partition_for
        self._journal = journal
        self._config = config
        self._new_producer_id = new_producer_id
        self._tasks = tasks
        self._endings = Endings(markers, clock)
        self._shards: dict[int, TransactionShard] = {}
        self._timers: list[Timer] = []

    # Lifecycle

    def start(self) -> None:
        """Start to look for transactions that have timed out, and ids that have expired."""
        self._every(self._config.abort_interval_ms, self.abort_timed_out)
        self._every(self._config.id_expiration_interval_ms, self.expire_ids)

    def _every(self, interval_ms: int, work: Callable[[], None]) -> None:
        def due() -> None:
            self._timers.remove(timer)
            self._every(interval_ms, work)
            work()

        timer = self._clock.call_later(interval_ms / 1000, due)
        self._timers.append(timer)

    async def close(self) -> None:
        """Unload everything. The tasks that send markers end with the broker's other tasks."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close()
        for shard in shards.values():
            await shard.writer.stop()

    async def load(self, partition: int, epoch: int) -> None:
        """Load a partition that this broker now leads, and go on with transactions that were being ended.

        If it cannot be read, the error is raised and the partition counts as led elsewhere.
        """
        known = self._shards.get(partition)
        if known is not None and known.epoch >= epoch:
            return
        self.unload(partition)
        shard = self._shards[partition] = TransactionShard(partition, epoch, self._journal)
        try:
            await shard.load()
        except BaseException:
            if self._shards.get(partition) is shard:
                self.unload(partition)
            raise
        for transaction in tuple(shard.transactions.values()):
            if transaction.state.is_ending:
                self._write_markers(shard, transaction)

    def unload(self, partition: int) -> None:
        """Forget a partition that this broker no longer leads."""
        if shard := self._shards.pop(partition, None):
            shard.close()

    # Producers

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None = None
    ) -> InitReply:
        """Give a producer its id and epoch. An open transaction is aborted first, and the producer told to
        ask again.
        """
        try:
            shard = self._shard_of(transactional_id)
            if not 0 < timeout_ms <= self._config.max_timeout_ms:
                return InitReply(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
            if transactional_id not in shard.transactions:
                producer_id = await self._new_producer_id()
                self._check_still(shard)
                new = Transaction.new(transactional_id, producer_id, timeout_ms, self._clock.now_ms())
                shard.transactions.setdefault(transactional_id, new)
            transaction = shard.transactions[transactional_id]
            transaction.check_may_begin(expected)
            if transaction.state is _S.ONGOING:
                error = await self._outcome(self._abort_fenced(shard, transaction))
                return InitReply(error or ErrorCode.CONCURRENT_TRANSACTIONS)
            value = await self._begin_anew(shard, transaction, timeout_ms, expected)
            error = await self._outcome(self._write(shard, transaction, value))
        except TransactionRefused as refused:
            return InitReply(refused.code)
        if error:
            return InitReply(error)
        return InitReply(ErrorCode.NONE, value.producer_id, value.producer_epoch)

    async def _begin_anew(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
    ) -> TransactionValue:
        """Return the state with a higher epoch, or with a new producer id if there is no higher epoch."""
        epoch = None if expected is None else expected.epoch
        exhausted = transaction.is_epoch_exhausted and epoch in (None, transaction.value.producer_epoch)
        if exhausted:
            producer_id = await self._new_producer_id()
            self._check_still(shard)
            transaction.check_may_begin(expected)
            if not transaction.state.is_ended:
                raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
            return transaction.prepare_producer(
                producer_id, timeout_ms, self._clock.now_ms(), remember_epoch=expected is not None
            )
        return transaction.prepare_epoch(timeout_ms, epoch, self._clock.now_ms())

    # Transactions

    async def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Make partitions part of the producer's transaction. The first ones begin it."""
        added = frozenset(partitions)
        try:
            shard, transaction = self._find(transactional_id)
            transaction.check_producer(producer)
            transaction.check_not_pending()
            if transaction.state.is_ending:
                return ErrorCode.CONCURRENT_TRANSACTIONS
            if transaction.state is _S.ONGOING and added <= transaction.value.partitions:
                return ErrorCode.NONE
            value = transaction.prepare_partitions(added, self._clock.now_ms())
        except TransactionRefused as refused:
            return refused.code
        return await self._outcome(self._write(shard, transaction, value))

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode] | ErrorCode:
        """Return for each partition whether it is part of the producer's transaction (KIP-890)."""
        try:
            _, transaction = self._find(transactional_id)
            transaction.check_producer(producer)
        except TransactionRefused as refused:
            return refused.code
        if transaction.state.is_ending:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return {
            each: ErrorCode.NONE if each in transaction.value.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for each in partitions
        }

    async def end(self, transactional_id: str, producer: ProducerIdAndEpoch, *, commits: bool) -> ErrorCode:
        """Commit or abort the producer's transaction. The answer does not wait for the markers."""
        try:
            shard, transaction = self._find(transactional_id)
            transaction.check_producer(producer)
            transaction.check_not_pending()
            if transaction.state is not _S.ONGOING:
                return _repeated_end(transaction.state, commits=commits)
            value = transaction.prepare_end(self._clock.now_ms(), commits=commits)
        except TransactionRefused as refused:
            return refused.code
        return await self._outcome(self._write(shard, transaction, value))

    def _abort_fenced(self, shard: TransactionShard, transaction: Transaction) -> asyncio.Future[ErrorCode]:
        """Abort an open transaction with a higher epoch, so that its producer may write no more."""
        transaction.fence()
        value = transaction.prepare_end(self._clock.now_ms(), commits=False)
        return self._write(shard, transaction, value)

    # Administration

    def describe(self, transactional_id: str) -> TransactionDescription:
        try:
            shard = self._shard_of(transactional_id)
        except TransactionRefused as refused:
            return TransactionDescription(error=refused.code, transactional_id=transactional_id)
        return describe(transactional_id, shard.transactions.get(transactional_id))

    def list(self, wanted: TransactionFilter) -> TransactionList:
        loading = any(shard.is_loading for shard in self._shards.values())
        known = [each for shard in self._shards.values() for each in shard.transactions.values()]
        return list_all(known, wanted, self._clock.now_ms(), is_loading=loading)

    # Regular work

    def abort_timed_out(self) -> None:
        """Abort transactions that have been open for longer than their producers said."""
        now_ms = self._clock.now_ms()
        for shard, transaction in self._all():
            value = transaction.value
            if (
                transaction.state is _S.ONGOING
                and transaction.pending is None
                and value.started_ms + value.timeout_ms < now_ms
            ):
                log.info("transaction %s has timed out and is aborted", transaction.id)
                self._abort_fenced(shard, transaction)

    def expire_ids(self) -> None:
        """Forget transactional ids that nobody has used for long."""
        before_ms = self._clock.now_ms() - self._config.id_expiration_ms
        for shard, transaction in self._all():
            if (
                transaction.state.is_ended
                and transaction.pending is None
                and transaction.value.updated_ms <= before_ms
            ):
                transaction.prepare_dead()
                shard.writer.write(
                    [(encode_key(transaction.id), None)], partial(_expired, shard, transaction)
                )

    def _all(self) -> tuple[tuple[TransactionShard, Transaction], ...]:
        return tuple(
            (shard, transaction)
            for shard in self._shards.values()
            if not shard.is_loading
            for transaction in shard.transactions.values()
        )

    # Writing

    def _write(
        self, shard: TransactionShard, transaction: Transaction, value: TransactionValue
    ) -> asyncio.Future[ErrorCode]:
        """Write the pending state. What follows from it happens even if the client has gone meanwhile."""
        record = encode_key(transaction.id), encode_value(value)
        return shard.writer.write([record], partial(self._written, shard, transaction, value))

    async def _outcome(self, write: asyncio.Future[ErrorCode]) -> ErrorCode:
        error = await asyncio.shield(write)
        return _WRITE_ERRORS.get(error, error)

    def _written(
        self, shard: TransactionShard, transaction: Transaction, value: TransactionValue, error: ErrorCode
    ) -> None:
        if error is not ErrorCode.NONE:
            transaction.give_up()
            return
        transaction.complete(value)
        if value.state.is_ending and not shard.is_closed:
            self._write_markers(shard, transaction)

    def _write_markers(self, shard: TransactionShard, transaction: Transaction) -> None:
        value = transaction.prepare_complete(self._clock.now_ms())
        self._tasks.start(
            self._endings.finish(shard, transaction, value), f"end of transaction {transaction.id}"
        )

    # Finding a transaction

    def _shard_of(self, transactional_id: str) -> TransactionShard:
        """Return the loaded shard of the id. Raises TransactionRefused."""
        if not transactional_id or len(transactional_id.encode()) > _LONGEST_ID_BYTES:
            raise TransactionRefused(ErrorCode.INVALID_REQUEST)
        shard = self._shards.get(self._partition_for(transactional_id))
        if shard is None:
            raise TransactionRefused(ErrorCode.NOT_COORDINATOR)
        if shard.is_loading:
            raise TransactionRefused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _find(self, transactional_id: str) -> tuple[TransactionShard, Transaction]:
        shard = self._shard_of(transactional_id)
        if (transaction := shard.transactions.get(transactional_id)) is None:
            raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return shard, transaction

    def _check_still(self, shard: TransactionShard) -> None:
        """Raise TransactionRefused if another broker leads the partition by now."""
        if shard.is_closed:
            raise TransactionRefused(ErrorCode.NOT_COORDINATOR)


def _repeated_end(state: TransactionState, *, commits: bool) -> ErrorCode:
    """Return the answer to an end when no transaction is open: it may be the same request again."""
    if state is (_S.COMPLETE_COMMIT if commits else _S.COMPLETE_ABORT):
        return ErrorCode.NONE
    if state is (_S.PREPARE_COMMIT if commits else _S.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _expired(shard: TransactionShard, transaction: Transaction, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        transaction.give_up()
    elif shard.transactions.get(transaction.id) is transaction:
        del shard.transactions[transaction.id]
