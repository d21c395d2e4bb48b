"""InitProducerId: an id under which an idempotent producer numbers its batches.

Without a transactional id the answer is always a fresh id and epoch 0, even to a producer that names an id it
has (version 3 on); so does Kafka.
Gaps: transactions. A transactional id is refused with INVALID_REQUEST, so that the producer fails at once
instead of trying for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import InitProducerIdResponse, Message

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request


@handles(22, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    if request.body.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=await context.broker.producer_ids.take(), producer_epoch=0)
