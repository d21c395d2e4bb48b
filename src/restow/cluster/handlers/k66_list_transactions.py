"""ListTransactions: the transactional ids that this broker coordinates.

Versions: 1 adds a filter by how long a transaction has been open.
Not supported: patterns of ids (2).
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.transactions import TransactionFilter
from restow.wire.messages import ListTransactionsResponse, Message

_FIRST_WITH_DURATION = 1


@handles(66, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    found = context.broker.transactions.list(
        TransactionFilter(
            states=frozenset(body.state_filters),
            producer_ids=frozenset(body.producer_id_filters),
            longer_than_ms=body.duration_filter if request.api_version >= _FIRST_WITH_DURATION else -1,
        )
    )
    return ListTransactionsResponse(
        error_code=found.error,
        unknown_state_filters=list(found.unknown_states),
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state,
            )
            for each in found.transactions
        ],
    )
