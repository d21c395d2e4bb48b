"""LeaderAndIsr: the controller assigns replicas to this broker, as leader or follower.

Versions: the response names topics by id.
Not supported: versions below 5; our own controller uses the latest.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import LeaderAndIsrResponse, Message


@handles(4, range(5, 8))
async def handle(request: Request, context: RequestContext) -> Message:
    broker = context.broker
    async with broker.controller_requests.turn:
        refusal = await broker.controller_requests.refusal_of(request.body, context.number)
        if refusal:
            return LeaderAndIsrResponse(error_code=refusal, topics=[])
        await broker.config_store.learn(topic.topic_name for topic in request.body.topic_states)
        return broker.replicas.apply_leader_and_isr(request.body)
