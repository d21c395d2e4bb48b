"""Produce: append batches to partitions that this broker leads.

Behaviour: with acks=0 there is no response; a refused batch closes the connection, the only sign that such a
producer can see.
Versions:
- 0 to 2 are offered, because librdkafka compresses only then, but refused with
  UNSUPPORTED_FOR_MESSAGE_FORMAT.
- 10 names the current leader if this broker is not the leader.
Not supported: transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import INTERNAL_TOPICS
from restow.cluster.handlers.leaders import endpoints_of, with_leader
from restow.cluster.handlers.registry import Answer, HangUp, Message, Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.produce import VERSIONS, Produced, encode_produce_response

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_WITH_BATCHES = 3
_FIRST_WITH_LEADERS = 10
_ACKS = (-1, 0, 1)
_ADMIN_CLIENT = "__admin_client"


@handles(0, VERSIONS)
async def handle(request: Request, context: RequestContext) -> Answer:
    body = request.body
    results = await _append(request, context)
    if body.acks == 0:
        if refused := next((each for each in results.values() if each.error_code), None):
            raise HangUp(f"a batch was refused: {ErrorCode.of(refused.error_code).message}")
        return None
    return _encode(request.api_version, body, results, context)


async def _append(request: Request, context: RequestContext) -> Mapping[TopicPartition, Produced]:
    body = request.body
    given = {
        TopicPartition(topic.name, each.index): each.records
        for topic in body.topic_data
        for each in topic.partition_data
    }
    code = _refusal(request)
    if code:
        return {each: Produced(each.partition, code) for each in given}
    refused = {}
    for partition, records in given.items():
        if partition.topic in INTERNAL_TOPICS and request.client_id != _ADMIN_CLIENT:
            refused[partition] = Produced(partition.partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
        elif not records:
            refused[partition] = Produced(partition.partition, ErrorCode.INVALID_RECORD)
    wanted = {each: records for each, records in given.items() if each not in refused}
    if wanted:
        appended = await context.broker.replicas.append(wanted, acks=body.acks, timeout_ms=body.timeout_ms)
        return {**appended, **refused}
    return refused


def _refusal(request: Request) -> ErrorCode:
    if request.body.acks not in _ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.api_version < _FIRST_WITH_BATCHES:
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    if request.body.transactional_id is not None:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NONE


def _encode(
    version: int, body: Message, results: Mapping[TopicPartition, Produced], context: RequestContext
) -> tuple[bytes, ...]:
    topics = []
    leaders: set[int] = set()
    for topic in body.topic_data:
        produced = []
        for each in topic.partition_data:
            partition = TopicPartition(topic.name, each.index)
            result = results[partition]
            if result.error_code and version >= _FIRST_WITH_LEADERS:
                result = with_leader(result, partition, context, leaders)
            produced.append(result)
        topics.append((topic.name, produced))
    return encode_produce_response(version, topics, endpoints=endpoints_of(context, leaders))
