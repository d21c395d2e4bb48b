"""ConsumerGroupHeartbeat: join, stay in and leave a group of the protocol `consumer` (KIP-848).

Behaviour: the response has the member's epoch, and its assignment when that changed or the member asks.
Versions: 1 adds regular expressions, and members bring their own ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups import HeartbeatRequest
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import by_topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ConsumerGroupHeartbeatResponse, Message

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

_FIRST_WITH_PATTERN = 1
_Assignment = ConsumerGroupHeartbeatResponse.Assignment


@handles(68, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    body, version = request.body, request.api_version
    if not body.group_id:
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message="GroupId can't be empty."
        )
    names = body.subscribed_topic_names
    heartbeat = HeartbeatRequest(
        member_id=body.member_id,
        epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topics=None if names is None else tuple(names),
        pattern=body.subscribed_topic_regex if version >= _FIRST_WITH_PATTERN else None,
        server_assignor=body.server_assignor,
        owned=_owned(body.topic_partitions),
        client_id=request.client_id or "",
        client_host=context.client_host,
        needs_member_id=version >= _FIRST_WITH_PATTERN,
    )
    reply = await context.broker.groups.consumer_heartbeat(body.group_id, heartbeat)
    given = None if reply.assignment is None else by_topic(sorted(reply.assignment))
    return ConsumerGroupHeartbeatResponse(
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=None
        if given is None
        else _Assignment(
            topic_partitions=[
                _Assignment.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in given.items()
            ]
        ),
    )


def _owned(topics: Iterable[Message] | None) -> frozenset[tuple[UUID, int]] | None:
    if topics is None:
        return None
    return frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)
