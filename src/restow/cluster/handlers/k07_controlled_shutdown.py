"""ControlledShutdown: a broker wants to stop, and asks the controller to move its leaders away first.

The answer has the partitions that it still leads; when there are none it may stop.

The broker has to name the epoch with which it is registered, which is not told to clients: otherwise anybody
could take the leaders off any broker.

Versions: 2 brings that epoch. Earlier ones are not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller import ControllerError
from restow.cluster.handlers.registry import handles
from restow.wire.messages import ControlledShutdownResponse, Message

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request


@handles(7, range(2, 4))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    try:
        remaining = await context.broker.controller.handle_controlled_shutdown(
            body.broker_id, body.broker_epoch
        )
    except ControllerError as error:
        return ControlledShutdownResponse(error_code=error.code, remaining_partitions=[])
    return ControlledShutdownResponse(
        remaining_partitions=[
            ControlledShutdownResponse.RemainingPartition(topic_name=topic, partition_index=number)
            for topic, number in sorted(remaining)
        ]
    )
