"""Metadata: return brokers, controller, and the requested topics with their leaders.

Behaviour:
- Answers from the controller's last UpdateMetadata.
- Creates an unknown topic if the client and auto.create.topics.enable allow it; the client then asks again.
- Authorized operations (8 on) are all operations, because there is no authorization.
Versions: in 0 an empty list means all topics, from 1 on null does; 4 lets a client forbid creation; 10
returns topic ids, 12 accepts them.
"""

from __future__ import annotations

from restow.cluster.broker.topic_rules import TopicRefused, check_name
from restow.cluster.handlers.registry import Answer, Message, Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.metadata import NOT_ASKED_FOR, VERSIONS, encode_metadata_response, encode_unknown_topic
from restow.wire.operations import ON_CLUSTERS, ON_TOPICS, bits

_FIRST_WITH_NULL = 1
_FIRST_WITH_CHOICE = 4
_FIRST_WITH_RIGHTS = 8
_LAST_WITH_CLUSTER = 10
_FIRST_BY_ID = 12
_FIRST_NEWS_S = 5.0
"""How long a new broker waits for the controller before it answers that topics do not exist."""


@handles(3, VERSIONS)
async def handle(request: Request, context: RequestContext) -> Answer:
    body, version = request.body, request.api_version
    metadata = context.broker.metadata
    await metadata.until(lambda: bool(metadata.brokers), _FIRST_NEWS_S)
    tells = version >= _FIRST_WITH_RIGHTS
    allowed = bits(ON_TOPICS) if tells and body.include_topic_authorized_operations else NOT_ASKED_FOR
    if body.topics is None or (version < _FIRST_WITH_NULL and not body.topics):
        topics = [topic.encode(version, authorized_operations=allowed) for topic in metadata.topics.values()]
    else:
        may_create = version < _FIRST_WITH_CHOICE or body.allow_auto_topic_creation
        topics = [
            _topic(context, version, wanted, may_create=may_create, allowed=allowed) for wanted in body.topics
        ]
    return encode_metadata_response(
        version,
        brokers=tuple(metadata.at(context.listener).values()),
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        topics=topics,
        authorized_operations=(
            bits(ON_CLUSTERS)
            if _FIRST_WITH_RIGHTS <= version <= _LAST_WITH_CLUSTER
            and body.include_cluster_authorized_operations
            else NOT_ASKED_FOR
        ),
    )


def _topic(
    context: RequestContext, version: int, wanted: Message, *, may_create: bool, allowed: int
) -> bytes:
    metadata = context.broker.metadata
    name = wanted.name
    if name is None:
        name = metadata.name_of(wanted.topic_id) if version >= _FIRST_BY_ID else None
        if name is None:
            # Below version 12 a name is required, even if the client sent none.
            shown = None if version >= _FIRST_BY_ID else ""
            return encode_unknown_topic(
                version, ErrorCode.UNKNOWN_TOPIC_ID, name=shown, topic_id=wanted.topic_id
            )
    known = metadata.topics.get(name)
    if known is not None:
        return known.encode(version, authorized_operations=allowed)
    try:
        check_name(name)
    except TopicRefused as refused:
        return encode_unknown_topic(version, refused.code, name=name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if may_create and context.broker.creation.create_in_passing(name):
        code = ErrorCode.LEADER_NOT_AVAILABLE
    return encode_unknown_topic(version, code, name=name)
