"""Requests whose needs are not the same for all their elements: what Kafka's KafkaApis says of each."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from restow.cluster.faults.answers import error_answer, fetch_answer, handled
from restow.cluster.faults.asked import asks_for_all_topics, partitions_of, topic_of
from restow.cluster.handlers.k01_fetch import replica_id_of
from restow.cluster.handlers.k75_describe_topic_partitions import starts_well
from restow.cluster.security.acls import AclOperation, AclResource
from restow.cluster.security.guard import CODES, without
from restow.wire.batches import TRANSACTIONAL_BIT
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    AddPartitionsToTxnResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from restow.wire.operations import ON_CLUSTERS, ON_TOPICS, bits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from restow.cluster.security.guard import Client, Proceed
    from restow.wire.codec import Request

_CLUSTER, _TOPIC, _GROUP = AclResource.CLUSTER, AclResource.TOPIC, AclResource.GROUP
_TXN = AclResource.TRANSACTIONAL_ID
_OP = AclOperation
_OF_TOPICS = 2
_OF_TRANSACTIONS = 1
_FIRST_COORDINATORS = 4
_FIRST_GROUPS = 8
_FIRST_BETWEEN_BROKERS = 4
_FIRST_WITH_CONFIGS = 5
_ATTRIBUTES = 21
"""Where a batch says whether it is transactional."""
_BEFORE_LENGTH = 8
_HEADER_BYTES = 61


async def _produce(client: Client, request: Request, proceed: Proceed) -> Any:
    """Only transactional batches need the transactional id, whatever the request says."""
    context, body = client.context, request.body
    if (
        body.transactional_id is not None
        and not client.may(_OP.WRITE, _TXN, body.transactional_id)
        and any(_is_transactional(each.records) for topic in body.topic_data for each in topic.partition_data)
    ):
        return await error_answer(request, context, CODES[_TXN], None, proceed)
    denied = [each for each in body.topic_data if not client.may(_OP.WRITE, _TOPIC, each.name)]
    if denied:
        proceed = without("topic_data", denied, CODES[_TOPIC], proceed)
    return await proceed(request, context)


def _is_transactional(records: bytes | None) -> bool:
    """Return whether a batch is transactional. What cannot be read is for the handler to refuse."""
    at, data = 0, records or b""
    while len(data) - at >= _HEADER_BYTES:
        if int.from_bytes(data[at + _ATTRIBUTES : at + _ATTRIBUTES + 2], "big") & TRANSACTIONAL_BIT:
            return True
        at += _BEFORE_LENGTH + 4 + max(int.from_bytes(data[at + _BEFORE_LENGTH : at + 12], "big"), 1)
    return False


async def _offset_delete(client: Client, request: Request, proceed: Proceed) -> Any:
    """The group's own error comes first, even if no topic is left."""
    context, body = client.context, copy.copy(request.body)
    denied = [each for each in body.topics if not client.may(_OP.READ, _TOPIC, each.name)]
    if not denied:
        return await proceed(request, context)
    body.topics = [each for each in body.topics if not any(each is no for no in denied)]
    answer = await handled(request._replace(body=body), context, proceed)
    if answer.error_code:
        return answer
    rest = copy.copy(request.body)
    rest.topics = denied
    refused = await error_answer(request._replace(body=rest), context, CODES[_TOPIC], None, proceed)
    answer.topics = [*(answer.topics or ()), *getattr(refused, "topics", ())]
    return answer


async def _fetch(client: Client, request: Request, proceed: Proceed) -> Any:
    """Consumers read topics; followers, who name their broker, act for the cluster."""
    context, body = client.context, request.body
    replica_id = replica_id_of(body, request.api_version)
    topics = {each.topic for each in partitions_of(request, context)}
    if replica_id >= 0:
        denied = frozenset() if client.may(_OP.CLUSTER_ACTION, _CLUSTER) else frozenset(topics)
    else:
        denied = frozenset(each for each in topics if not client.may(_OP.READ, _TOPIC, each))
    if not denied:
        return await proceed(request, context)
    return await fetch_answer(request, context, CODES[_TOPIC], denied, proceed)


async def _metadata(client: Client, request: Request, proceed: Proceed) -> Any:
    """Topics that the client may not describe are left out, or refused if they were named."""
    context, body = client.context, copy.copy(request.body)
    known = context.broker.metadata.topics
    refused = []
    if asks_for_all_topics(request):
        named = MetadataRequest.MetadataRequestTopic
        body.topics = [named(name=each) for each in known if client.may(_OP.DESCRIBE, _TOPIC, each)]
    else:
        body.topics = []
        for each in request.body.topics:
            name = topic_of(each, context)
            if name is None or client.may(_OP.DESCRIBE, _TOPIC, name):
                creates = name is not None and name not in known and _may_create_in_passing(request)
                if not creates or _may_create(client, str(name)):
                    body.topics.append(each)
                    continue
            refused.append(_refused_topic(each))
    answer = await handled(request._replace(body=body), context, proceed)
    answer.topics = [
        *(each for each in answer.topics if _is_shown(client, each)),
        *refused,
    ]
    if answer.authorized_operations is not None:
        answer.authorized_operations = _on_cluster(client)
    for each in answer.topics:
        if each.authorized_operations is not None:
            each.authorized_operations = {
                number for number in ON_TOPICS if client.may(AclOperation(number), _TOPIC, each.name)
            }
    return answer


def _is_shown(client: Client, topic: Any) -> bool:
    """Return whether a topic may be seen: version 0 asks for all with an empty list, which stays empty."""
    return topic.name is None or client.may(_OP.DESCRIBE, _TOPIC, topic.name)


def _refused_topic(asked: Any) -> Any:
    """Return the error; a topic that was asked for by its id does not show its name."""
    made = MetadataResponse.MetadataResponseTopic
    if asked.name is None:
        return made(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[])
    return made(error_code=CODES[_TOPIC], name=asked.name, partitions=[])


def _may_create_in_passing(request: Request) -> bool:
    return request.api_version < 4 or bool(request.body.allow_auto_topic_creation)


def _may_create(client: Client, topic: str) -> bool:
    return client.may(_OP.CREATE, _CLUSTER) or client.may(_OP.CREATE, _TOPIC, topic)


def _on_cluster(client: Client) -> set[int]:
    """Return what the client may do to the cluster; nothing is told to those who may not describe it."""
    if not client.may(_OP.DESCRIBE, _CLUSTER):
        return set()
    return {number for number in ON_CLUSTERS if client.may(AclOperation(number), _CLUSTER)}


async def _describe_topic_partitions(client: Client, request: Request, proceed: Proceed) -> Any:
    """Topics that the client may not describe are left out, or refused if they were named."""
    context, body = client.context, copy.copy(request.body)
    if not starts_well(body):
        return await proceed(request, context)
    first, are_named = "" if body.cursor is None else body.cursor.topic_name, bool(body.topics)
    named = {each.name for each in body.topics} or set(context.broker.metadata.topics)
    wanted = {each for each in named if each >= first}
    allowed = {each for each in wanted if client.may(_OP.DESCRIBE, _TOPIC, each)}
    answer = DescribeTopicPartitionsResponse(topics=[])
    if allowed:
        kind = DescribeTopicPartitionsRequest.TopicRequest
        body.topics = [kind(name=each) for each in allowed]
        if first not in allowed:
            body.cursor = None
        answer = await handled(request._replace(body=body), context, proceed)
    for each in answer.topics:
        operations = (number for number in ON_TOPICS if client.may(AclOperation(number), _TOPIC, each.name))
        each.topic_authorized_operations = bits(operations)
    if are_named:
        made = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
        refused = sorted(wanted - allowed)
        answer.topics += [made(error_code=CODES[_TOPIC], name=each, partitions=[]) for each in refused]
    return answer


async def _offset_fetch(client: Client, request: Request, proceed: Proceed) -> Any:
    """A group must be described, and so must its topics; of all topics, the others are left out."""
    context, body = client.context, request.body
    if request.api_version < _FIRST_GROUPS:
        if not client.may(_OP.DESCRIBE, _GROUP, body.group_id):
            return await error_answer(request, context, CODES[_GROUP], None, proceed)
        answer = await handled(request, context, proceed)
        _hide_offsets(client, answer, of_all=body.topics is None)
        return answer
    denied = [each for each in body.groups if not client.may(_OP.DESCRIBE, _GROUP, each.group_id)]
    if denied:
        proceed = without("groups", denied, CODES[_GROUP], proceed)
    answer = await handled(request, context, proceed)
    all_of = {each.group_id for each in body.groups if each.topics is None}
    for group in answer.groups:
        _hide_offsets(client, group, of_all=group.group_id in all_of)
    return answer


def _hide_offsets(client: Client, answer: Any, *, of_all: bool) -> None:
    kept = []
    for topic in answer.topics or ():
        if client.may(_OP.DESCRIBE, _TOPIC, topic.name):
            kept.append(topic)
        elif not of_all:
            for each in topic.partitions:
                each.committed_offset = each.committed_leader_epoch = -1
                each.metadata, each.error_code = "", CODES[_TOPIC]
            kept.append(topic)
    answer.topics = kept


async def _find_coordinator(client: Client, request: Request, proceed: Proceed) -> Any:
    context, body = client.context, request.body
    key_type = body.key_type if request.api_version >= 1 else 0
    resource = _TXN if key_type == _OF_TRANSACTIONS else _GROUP
    if request.api_version < _FIRST_COORDINATORS:
        if not client.may(_OP.DESCRIBE, resource, body.key):
            return await error_answer(request, context, CODES[resource], None, proceed)
        return await proceed(request, context)
    denied = [each for each in body.coordinator_keys if not client.may(_OP.DESCRIBE, resource, each)]
    if denied:
        proceed = without("coordinator_keys", denied, CODES[resource], proceed)
    return await proceed(request, context)


async def _list_groups(client: Client, request: Request, proceed: Proceed) -> Any:
    answer = await handled(request, client.context, proceed)
    if not client.may(_OP.DESCRIBE, _CLUSTER):
        answer.groups = [each for each in answer.groups if client.may(_OP.DESCRIBE, _GROUP, each.group_id)]
    return answer


async def _create_topics(client: Client, request: Request, proceed: Proceed) -> Any:
    denied = [each for each in request.body.topics if not _may_create(client, each.name)]
    if denied:
        proceed = without("topics", denied, CODES[_TOPIC], proceed)
    answer = await handled(request, client.context, proceed)
    if request.api_version >= _FIRST_WITH_CONFIGS:
        for each in answer.topics:
            if not each.error_code and not client.may(_OP.DESCRIBE_CONFIGS, _TOPIC, each.name):
                each.topic_config_error_code = CODES[_TOPIC]
                each.num_partitions = each.replication_factor = -1
                each.configs = []
    return answer


async def _delete_topics(client: Client, request: Request, proceed: Proceed) -> Any:
    """Whether a topic exists is told only to those who may describe it."""
    context, known = client.context, client.context.broker.metadata.topics
    for field in ("topic_names", "topics"):
        refused: dict[ErrorCode, list[Any]] = {}
        for each in getattr(request.body, field) or ():
            name = topic_of(each, context)
            if name is None or client.may(_OP.DELETE, _TOPIC, name):
                continue
            code = CODES[_TOPIC]
            if not client.may(_OP.DESCRIBE, _TOPIC, name):
                is_by_id = not isinstance(each, str) and each.name is None
                code = ErrorCode.UNKNOWN_TOPIC_ID if is_by_id else code
            elif name not in known:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.setdefault(code, []).append(each)
        for code, elements in refused.items():
            proceed = without(field, elements, code, proceed)
    return await proceed(request, context)


async def _init_producer_id(client: Client, request: Request, proceed: Proceed) -> Any:
    """A producer without transactions needs to be allowed to write to some topic, or to be idempotent."""
    context, transactional_id = client.context, request.body.transactional_id
    code = None
    if transactional_id is not None:
        if not client.may(_OP.WRITE, _TXN, transactional_id):
            code = CODES[_TXN]
    elif not client.may(_OP.IDEMPOTENT_WRITE, _CLUSTER) and not client.rules.allows_somewhere(
        context.principal, context.host, _OP.WRITE, _TOPIC
    ):
        code = CODES[_CLUSTER]
    if code is not None:
        return await error_answer(request, context, code, None, proceed)
    return await proceed(request, context)


async def _offset_for_leader_epoch(client: Client, request: Request, proceed: Proceed) -> Any:
    if not client.may(_OP.CLUSTER_ACTION, _CLUSTER):
        denied = [each for each in request.body.topics if not client.may(_OP.DESCRIBE, _TOPIC, each.topic)]
        if denied:
            proceed = without("topics", denied, CODES[_TOPIC], proceed)
    return await proceed(request, client.context)


async def _add_partitions_to_txn(client: Client, request: Request, proceed: Proceed) -> Any:
    """Brokers act for the cluster. Of a client's partitions, all are added or none is."""
    context, body = client.context, request.body
    if request.api_version >= _FIRST_BETWEEN_BROKERS:
        if not client.may(_OP.CLUSTER_ACTION, _CLUSTER):
            return await error_answer(request, context, CODES[_CLUSTER], None, proceed)
        return await proceed(request, context)
    if not client.may(_OP.WRITE, _TXN, body.v3_and_below_transactional_id):
        return await error_answer(request, context, CODES[_TXN], None, proceed)
    allowed = {each.name: client.may(_OP.WRITE, _TOPIC, each.name) for each in body.v3_and_below_topics}
    if all(allowed.values()):
        return await proceed(request, context)
    made = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            made(
                name=topic.name,
                results_by_partition=[
                    made.AddPartitionsToTxnPartitionResult(
                        partition_index=number,
                        partition_error_code=(
                            ErrorCode.OPERATION_NOT_ATTEMPTED if allowed[topic.name] else CODES[_TOPIC]
                        ),
                    )
                    for number in topic.partitions
                ],
            )
            for topic in body.v3_and_below_topics
        ]
    )


async def _write_txn_markers(client: Client, request: Request, proceed: Proceed) -> Any:
    if client.may(_OP.ALTER, _CLUSTER) or client.may(_OP.CLUSTER_ACTION, _CLUSTER):
        return await proceed(request, client.context)
    return await error_answer(request, client.context, CODES[_CLUSTER], None, proceed)


def _on_configs(operation: AclOperation) -> Callable[[Client, Request, Proceed], Awaitable[Any]]:
    """Return the rule of a request about configs, of topics or of the cluster's brokers."""

    async def rule(client: Client, request: Request, proceed: Proceed) -> Any:
        resources = request.body.resources
        of_topics = [each for each in resources if each.resource_type == _OF_TOPICS]
        denied = [each for each in of_topics if not client.may(operation, _TOPIC, each.resource_name)]
        if denied:
            proceed = without("resources", denied, CODES[_TOPIC], proceed)
        others = [each for each in resources if each.resource_type != _OF_TOPICS]
        if others and not client.may(operation, _CLUSTER):
            proceed = without("resources", others, CODES[_CLUSTER], proceed)
        return await proceed(request, client.context)

    return rule


async def _describe_cluster(client: Client, request: Request, proceed: Proceed) -> Any:
    answer = await handled(request, client.context, proceed)
    if request.body.include_cluster_authorized_operations:
        answer.authorized_operations = _on_cluster(client)
    return answer


async def _describe_transactions(client: Client, request: Request, proceed: Proceed) -> Any:
    ids = request.body.transactional_ids
    denied = [each for each in ids if not client.may(_OP.DESCRIBE, _TXN, each)]
    if denied:
        proceed = without("transactional_ids", denied, CODES[_TXN], proceed)
    answer = await handled(request, client.context, proceed)
    for state in answer.transaction_states:
        state.topics = [each for each in state.topics or () if client.may(_OP.DESCRIBE, _TOPIC, each.topic)]
    return answer


async def _list_transactions(client: Client, request: Request, proceed: Proceed) -> Any:
    answer = await handled(request, client.context, proceed)
    answer.transaction_states = [
        each for each in answer.transaction_states if client.may(_OP.DESCRIBE, _TXN, each.transactional_id)
    ]
    return answer


SPECIAL: Mapping[int, Callable[[Client, Request, Proceed], Awaitable[Any]]] = {
    0: _produce,
    1: _fetch,
    3: _metadata,
    9: _offset_fetch,
    10: _find_coordinator,
    16: _list_groups,
    19: _create_topics,
    20: _delete_topics,
    22: _init_producer_id,
    23: _offset_for_leader_epoch,
    24: _add_partitions_to_txn,
    27: _write_txn_markers,
    32: _on_configs(_OP.DESCRIBE_CONFIGS),
    33: _on_configs(_OP.ALTER_CONFIGS),
    44: _on_configs(_OP.ALTER_CONFIGS),
    47: _offset_delete,
    60: _describe_cluster,
    65: _describe_transactions,
    66: _list_transactions,
    75: _describe_topic_partitions,
}
