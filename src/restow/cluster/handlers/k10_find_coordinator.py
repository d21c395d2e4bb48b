"""FindCoordinator: return the leader of a group's `__consumer_offsets` partition.

Behaviour: the first request creates that topic, and the client asks again.
Versions: up to 3 one key, from 4 on many.
Not supported: transactions (key type 1): refused with INVALID_REQUEST, so that a transactional producer fails
at once; share groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
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
_TRANSACTION = 1


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
    if key_type == _TRANSACTION:
        raise TopicRefused(ErrorCode.INVALID_REQUEST, "Transactions are not supported by this cluster.")
    if key_type != _GROUP:
        raise TopicRefused(ErrorCode.INVALID_REQUEST, f"There are no coordinators of type {key_type} here.")
    metadata = context.broker.metadata
    count = metadata.partition_count(GROUP_OFFSETS_TOPIC)
    if not count:
        context.broker.creation.create_in_passing(GROUP_OFFSETS_TOPIC)
        raise TopicRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = metadata.leader_endpoint(TopicPartition(GROUP_OFFSETS_TOPIC, partition_of_group(key, count)))
    if leader is None:
        raise TopicRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader
