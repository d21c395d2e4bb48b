"""InitProducerId: return a producer id for an idempotent producer.

Behaviour: returns a new id with epoch 0, even to a producer that names its id (version 3 on), as Kafka does.
Not supported: transactions: a transactional id is refused with INVALID_REQUEST, so that the producer fails at
once.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import InitProducerIdResponse, Message


@handles(22, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    if request.body.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=await context.broker.producer_ids.take(), producer_epoch=0)
