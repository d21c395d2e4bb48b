"""AllocateProducerIds: a broker asks the controller for a block of producer ids.

Behaviour: the request must have the broker's registration epoch, which clients do not know. Our own brokers
take their blocks from the store, which gives out the same ones.
"""

from __future__ import annotations

from restow.cluster.broker.producer_ids import take_block
from restow.cluster.controller import ControllerError
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AllocateProducerIdsResponse, Message


@handles(67, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    body, broker = request.body, context.broker
    try:
        await broker.controller.require_registered(
            body.broker_id, body.broker_epoch, unknown=ErrorCode.BROKER_ID_NOT_REGISTERED
        )
    except ControllerError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    first, end = await take_block(broker.store, body.broker_id)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=end - first)
