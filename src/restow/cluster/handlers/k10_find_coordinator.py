"""FindCoordinator: return the leader of a group's `__consumer_offsets` partition.

Behaviour: the first request creates that topic, and the client asks again. For a transactional id it is a
partition of `__transaction_state`.
Versions: 1 adds the type of the key; up to 3 one key, from 4 on many.
Not supported: share groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from restow.cluster.broker.topic_rules import TopicRefused
from restow.cluster.groups import partition_of_group
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import FindCoordinatorResponse, Message

if TYPE_CHECKING:
    from restow.wire.primitives import Endpoint

_FIRST_BATCHED = 4
_GROUP = 0
_TOPICS = {_GROUP: GROUP_OFFSETS_TOPIC, 1: TRANSACTION_STATE_TOPIC}
"""By type of the key."""


@handles(10, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    key_type = body.key_type if request.api_version >= 1 else _GROUP
    if request.api_version >= _FIRST_BATCHED:
        return FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponse.Coordinator(key=key, **_coordinator(context, key_type, key))
                for key in body.coordinator_keys
            ]
        )
    return FindCoordinatorResponse(**_coordinator(context, key_type, body.key))


def _coordinator(context: RequestContext, key_type: int, key: str) -> dict[str, object]:
    try:
        found = _find(context, key_type, key)
    except TopicRefused as refused:
        return {
            "error_code": refused.code,
            "error_message": str(refused),
            "node_id": -1,
            "host": "",
            "port": -1,
        }
    return {
        "error_code": 0,
        "error_message": None,
        "node_id": found.node_id,
        "host": found.host,
        "port": found.port,
    }


def _find(context: RequestContext, key_type: int, key: str) -> Endpoint:
    topic = _TOPICS.get(key_type)
    if topic is None:
        raise TopicRefused(ErrorCode.INVALID_REQUEST, f"There are no coordinators of type {key_type} here.")
    metadata = context.broker.metadata
    count = metadata.partition_count(topic)
    if not count:
        context.broker.creation.create_in_passing(topic)
        raise TopicRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = metadata.leader_endpoint(TopicPartition(topic, partition_of_group(key, count)), context.listener)
    if leader is None:
        raise TopicRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader
