"""InitProducerId: return a producer id and an epoch.

Behaviour:
- Without a transactional id: a new id with epoch 0, even to a producer that names its id (version 3 on), as
  Kafka does.
- With one: the id that belongs to it, with a higher epoch, which fences the producer that had it before. A
  transaction that is open is aborted first; the producer is told to ask again (CONCURRENT_TRANSACTIONS).
Versions: 3 names the producer's present id and epoch; from 4 on PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH.
Not supported: two-phase commit (6).
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.handlers.transactional import fenced_as_of
from restow.cluster.transactions import ProducerIdAndEpoch
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import InitProducerIdResponse, Message

_FIRST_WITH_FENCED = 4
_FIRST_WITH_PRODUCER = 3
_NONE = -1


@handles(22, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    if body.transactional_id is None:
        return InitProducerIdResponse(producer_id=await context.broker.producer_ids.take(), producer_epoch=0)
    expected = None
    if request.api_version >= _FIRST_WITH_PRODUCER:
        if (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
            return _refused(ErrorCode.INVALID_REQUEST)
        if body.producer_id != _NONE:
            expected = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    reply = await context.broker.transactions.init_producer_id(
        body.transactional_id, body.transaction_timeout_ms, expected
    )
    if reply.error:
        return _refused(fenced_as_of(request, reply.error, _FIRST_WITH_FENCED))
    return InitProducerIdResponse(producer_id=reply.producer_id, producer_epoch=reply.producer_epoch)


def _refused(code: ErrorCode) -> Message:
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)
