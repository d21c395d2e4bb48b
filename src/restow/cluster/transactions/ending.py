"""The last part of a transaction: markers in all its partitions, and then the record that it is complete."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from restow.cluster.transactions.records import encode_key, encode_value
from restow.cluster.transactions.requests import EndOfTransaction
from restow.cluster.transactions.states import TransactionState
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.transactions.records import TransactionValue
    from restow.cluster.transactions.requests import MarkerSender
    from restow.cluster.transactions.shard import TransactionShard
    from restow.cluster.transactions.transaction import Transaction
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)

_RETRY_S = 0.1
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""A newer producer or coordinator has written: this one has nothing more to end."""


class Endings:
    """Ends transactions, and tries again until that is done or another broker coordinates them."""

    def __init__(self, markers: MarkerSender, clock: Clock) -> None:
        self._markers = markers
        self._clock = clock

    async def finish(
        self, shard: TransactionShard, transaction: Transaction, value: TransactionValue
    ) -> None:
        """Write the markers, then that the transaction is complete, which is pending until then."""
        end = EndOfTransaction(
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            coordinator_epoch=shard.epoch,
            commits=value.state is TransactionState.COMPLETE_COMMIT,
        )
        if await self._all_marked(shard, transaction, end):
            await self._complete(shard, transaction, value)

    async def _all_marked(
        self, shard: TransactionShard, transaction: Transaction, end: EndOfTransaction
    ) -> bool:
        while not shard.is_closed:
            left = transaction.value.partitions
            if not left:
                return True
            codes = await self._markers.send(end, left)
            if fenced := next((code for code in codes.values() if code in _FENCED), None):
                log.info("transaction %s is not ended here: %s", transaction.id, fenced.message)
                return False
            transaction.without(each for each, code in codes.items() if code is ErrorCode.NONE)
            if transaction.value.partitions:
                await self._clock.sleep(_RETRY_S)
        return False

    async def _complete(
        self, shard: TransactionShard, transaction: Transaction, value: TransactionValue
    ) -> None:
        def written(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                transaction.complete(value)

        record = encode_key(transaction.id), encode_value(value)
        while not shard.is_closed:
            error = await asyncio.shield(shard.writer.write([record], written))
            if error is ErrorCode.NONE:
                return
            log.info("the end of transaction %s is not written yet: %s", transaction.id, error.message)
            await self._clock.sleep(_RETRY_S)
