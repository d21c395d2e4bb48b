"""ControlledShutdown: a broker asks the controller to move its leaders away before it stops.

Behaviour:
- The response has the partitions that the broker still leads; it may stop when there are none.
- The request must have the broker's registration epoch. Clients do not know it, so they cannot move leaders.
Not supported: versions 0 and 1, which have no epoch.
"""

from __future__ import annotations

from restow.cluster.controller import ControllerError
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import ControlledShutdownResponse, Message


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
