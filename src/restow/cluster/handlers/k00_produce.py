"""Produce: append batches to partitions that this broker leads.

Behaviour: with acks=0 there is no response; a refused batch closes the connection, the only sign that such a
producer can see.
Versions:
- 0 to 2 may carry the formats before Kafka 0.11, which are converted as they come. Later versions may not.
- 7 is the first that may carry zstd.
- 10 names the current leader if this broker is not the leader.
- 11 has TRANSACTION_ABORTABLE, before INVALID_TXN_STATE.
Transactional batches need a transactional id, and a batch that begins a transaction in its partition is
verified with the coordinator first (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import INTERNAL_TOPICS
from restow.cluster.handlers.leaders import endpoints_of, with_leader
from restow.cluster.handlers.registry import Answer, HangUp, Message, Request, RequestContext, handles
from restow.errors import RestowError
from restow.model import TopicPartition
from restow.wire.batches import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    CorruptBatch,
    header_at,
)
from restow.wire.compression import ZSTD
from restow.wire.error_codes import ErrorCode
from restow.wire.message_sets import magic_of, up_converted
from restow.wire.produce import VERSIONS, Produced, encode_produce_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIRST_WITH_BATCHES = 3
_FIRST_WITH_ZSTD = 7
_FIRST_WITH_LEADERS = 10
_FIRST_WITH_ABORTABLE = 11
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
"""The lower byte of a batch's attributes."""
_ACKS = (-1, 0, 1)
_ADMIN_CLIENT = "__admin_client"


class _OtherFormat(RestowError):
    """Records in a format that the request's version does not carry."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message)
        self.code = code


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
    code = _refusal(request, given.values())
    if code:
        return {each: Produced(each.partition, code) for each in given}
    refused = {}
    for partition, records in given.items():
        if partition.topic in INTERNAL_TOPICS and request.client_id != _ADMIN_CLIENT:
            refused[partition] = Produced(partition.partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
        elif not records:
            refused[partition] = Produced(partition.partition, ErrorCode.INVALID_RECORD)
        elif request.api_version < _FIRST_WITH_ZSTD or magic_of(records) != MAGIC:
            try:
                given[partition] = _in_todays_format(request.api_version, records)
            except (CorruptBatch, _OtherFormat) as error:
                refused[partition] = Produced(partition.partition, error.code, error_message=str(error))
    wanted = {each: records for each, records in given.items() if each not in refused}
    if not wanted:
        return refused
    if body.transactional_id is not None:
        return {**await _append_verified(request, context, wanted), **refused}
    appended = await context.broker.replicas.append(wanted, acks=body.acks, timeout_ms=body.timeout_ms)
    return {**appended, **refused} if refused else appended


def _in_todays_format(version: int, records: bytes) -> bytes:
    """Return the records as a batch. Raises CorruptBatch, or _OtherFormat if the version has none such."""
    magic = magic_of(records)
    if version < _FIRST_WITH_BATCHES:
        return records if magic == MAGIC else up_converted(records)
    if magic != MAGIC:
        raise _OtherFormat(
            f"version {version} carries record batches of magic {MAGIC}, not {magic}",
            ErrorCode.INVALID_RECORD,
        )
    if len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & COMPRESSION_MASK == ZSTD:
        raise _OtherFormat(f"version {version} knows no zstd", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return records


async def _append_verified(
    request: Request, context: RequestContext, wanted: Mapping[TopicPartition, bytes]
) -> Mapping[TopicPartition, Produced]:
    """Append what the coordinator knows to be part of the producer's transaction."""
    body = request.body
    headers = {each: header_at(data) for each, data in wanted.items() if len(data) >= HEADER_BYTES}
    verified = await context.broker.verifier.verify(
        body.transactional_id,
        headers,
        knows_abortable=request.api_version >= _FIRST_WITH_ABORTABLE,
        retriable=ErrorCode.NOT_ENOUGH_REPLICAS,
    )
    refused = {
        each: Produced(each.partition, code, error_message=code.message)
        for each, code in verified.errors.items()
    }
    appended = await context.broker.replicas.append(
        {each: data for each, data in wanted.items() if each not in refused},
        acks=body.acks,
        timeout_ms=body.timeout_ms,
        verifications=verified.verifications,
    )
    return {**appended, **refused}


def _refusal(request: Request, batches: Iterable[bytes]) -> ErrorCode:
    if request.body.acks not in _ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.body.transactional_id is None and any(map(_is_transactional, batches)):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _is_transactional(batches: bytes | None) -> bool:
    """Return whether the first batch is transactional. A producer sends one batch for a partition."""
    if not batches or len(batches) <= _ATTRIBUTES_AT or batches[_MAGIC_AT] != MAGIC:
        return False
    return bool(batches[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT)


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
