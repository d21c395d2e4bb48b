"""Descriptions and lists of transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.transactions.requests import (
    TransactionDescription,
    TransactionList,
    TransactionListing,
)
from restow.cluster.transactions.states import BY_LABEL, TransactionState
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.transactions.requests import TransactionFilter
    from restow.cluster.transactions.transaction import Transaction

_S = TransactionState


def describe(transactional_id: str, transaction: Transaction | None) -> TransactionDescription:
    """Describe a transactional id; one that has expired is unknown."""
    if transaction is None or transaction.state is _S.DEAD:
        return TransactionDescription(
            error=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
        )
    value = transaction.value
    return TransactionDescription(
        transactional_id=transactional_id,
        state=value.state.label,
        timeout_ms=value.timeout_ms,
        started_ms=value.started_ms,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        partitions=tuple(sorted(value.partitions)),
    )


def list_all(
    transactions: Iterable[Transaction], wanted: TransactionFilter, now_ms: int, *, is_loading: bool
) -> TransactionList:
    """List the transactional ids that pass the filter."""
    if is_loading:
        return TransactionList(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, (), ())
    unknown = tuple(sorted(wanted.states - BY_LABEL.keys()))
    listed = tuple(
        TransactionListing(each.id, each.value.producer_id, each.state.label)
        for each in transactions
        if _passes(each, wanted, now_ms)
    )
    return TransactionList(ErrorCode.NONE, unknown, listed)


def _passes(transaction: Transaction, wanted: TransactionFilter, now_ms: int) -> bool:
    value = transaction.value
    if value.state is _S.DEAD:
        return False
    if wanted.producer_ids and value.producer_id not in wanted.producer_ids:
        return False
    if 0 <= wanted.longer_than_ms >= now_ms - value.started_ms:
        return False
    return not wanted.states or value.state.label in wanted.states
