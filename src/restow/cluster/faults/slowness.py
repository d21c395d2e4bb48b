"""A slow log dir: requests that need it wait, because a slow disk call would stop the loop of all brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.faults.asked import partitions_of
from restow.cluster.faults.names import broker_behind

if TYPE_CHECKING:
    from restow.cluster.broker.broker import BrokerServer
    from restow.cluster.broker.services import RequestContext
    from restow.cluster.faults.handle import ClusterFault
    from restow.cluster.faults.requests import Intercept, Proceed
    from restow.cluster.handlers import Answer
    from restow.wire.codec import Request


def slow_down(fault: ClusterFault, by_s: float, slow: BrokerServer, path: str) -> Intercept:
    """Delay requests that read or write the log dir, and its broker's own fetches as a follower."""

    async def happen(request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        slow_id = slow.options.broker_id
        is_concerned = slow_id in (context.broker.broker_id, broker_behind(request.client_id))
        if is_concerned and slow.is_running:
            held = {key for each in slow.services.logs.directories if each.path == path for key in each.logs}
            if not held.isdisjoint(partitions_of(request, context)):
                fault.hit()
                await fault.until_over(by_s)
        return await proceed(request, context)

    return happen
