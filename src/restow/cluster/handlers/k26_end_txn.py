"""EndTxn: commit or abort a producer's transaction.

Behaviour: the answer comes when the decision is written. Markers follow, and until they are written the next
transaction is answered with CONCURRENT_TRANSACTIONS.
Versions: from 2 on PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH.
Not supported: a new epoch with every transaction (5, transaction version 2).
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.handlers.transactional import fenced_as_of
from restow.cluster.transactions import ProducerIdAndEpoch
from restow.wire.messages import EndTxnResponse, Message


@handles(26, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    producer = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    code = await context.broker.transactions.end(body.transactional_id, producer, commits=body.committed)
    return EndTxnResponse(error_code=fenced_as_of(request, code))
