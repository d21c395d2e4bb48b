"""Fetch: read records, for consumers up to the high watermark, for followers up to the log end.

Behaviour:
- Waits until there are `min_bytes` or `max_wait_ms` have passed.
- Within a session (KIP-227), requests and responses have only the changes.
- read_committed consumers read up to the last stable offset, and are told which transactions in the response
  were aborted.
- A consumer that names its rack is sent to a replica there, if `replica.selector.class` says so (KIP-392).
- From version 11 on, consumers may read from followers, up to the high watermark that these know of.
- An unknown topic id ends the session, so that the client asks for everything again.
Versions: 7 adds sessions, 9 leader epochs, 12 diverging epochs; 13 names topics by id; 16 names the current
leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from restow.cluster.handlers.isolation import reads_committed_only
from restow.cluster.handlers.leaders import endpoints_of, with_leader
from restow.cluster.handlers.registry import Answer, Message, Request, RequestContext, handles
from restow.cluster.replication import FetchPartition, FetchSpec
from restow.cluster.replication.values import CONSUMER, FINAL_EPOCH
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import VERSIONS, Fetched, encode_fetch_response

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_WITH_RACK = 11
_FIRST_BY_ID = 13
_FIRST_WITH_REPLICA_STATE = 15
_FIRST_WITH_LEADERS = 16
_MOST_BYTES = 55 * 1024 * 1024


@handles(1, VERSIONS)
async def handle(request: Request, context: RequestContext) -> Answer:
    body, version = request.body, request.api_version
    wanted, unknown = _wanted(body, version, context)
    replica_id = replica_id_of(body, version)
    spec = FetchSpec(
        partitions=wanted,
        replica_id=replica_id,
        max_wait_ms=0 if unknown else body.max_wait_ms,
        min_bytes=body.min_bytes,
        max_bytes=min(body.max_bytes, _MOST_BYTES, context.backlog.answer_bytes),
        session_id=body.session_id,
        session_epoch=FINAL_EPOCH if unknown else body.session_epoch,
        forgotten=_forgotten(body, version, context),
        committed_only=reads_committed_only(body, replica_id),
        rack=body.rack_id if version >= _FIRST_WITH_RACK else None,
    )
    answer = await context.broker.replicas.fetch(spec)
    topics, leaders = _by_topic(answer.partitions, version, context)
    if unknown:
        topics += unknown.items()
    return encode_fetch_response(
        version,
        topics,
        error_code=answer.error_code,
        session_id=answer.session_id,
        endpoints=endpoints_of(context, leaders),
    )


def _wanted(
    body: Message, version: int, context: RequestContext
) -> tuple[dict[TopicPartition, FetchPartition], dict[str | UUID, list[Fetched]]]:
    """Return the requested partitions, and the responses for unknown topic ids."""
    wanted: dict[TopicPartition, FetchPartition] = {}
    unknown: dict[str | UUID, list[Fetched]] = {}
    for topic in body.topics:
        name = _name(topic, version, context)
        if name is None:
            unknown[topic.topic_id] = [
                Fetched(each.partition, ErrorCode.UNKNOWN_TOPIC_ID) for each in topic.partitions
            ]
            continue
        for each in topic.partitions:
            wanted[TopicPartition(name, each.partition)] = FetchPartition(
                each.fetch_offset,
                each.partition_max_bytes,
                each.current_leader_epoch,
                each.last_fetched_epoch,
                each.log_start_offset,
            )
    return wanted, unknown


def replica_id_of(body: Message, version: int) -> int:
    """Return the replica id. From version 15 on, only replicas send one."""
    if version < _FIRST_WITH_REPLICA_STATE:
        return int(body.replica_id)
    return CONSUMER if body.replica_state is None else int(body.replica_state.replica_id)


def _forgotten(body: Message, version: int, context: RequestContext) -> tuple[TopicPartition, ...]:
    forgotten = []
    for topic in body.forgotten_topics_data or ():
        name = _name(topic, version, context)
        if name is not None:
            forgotten += [TopicPartition(name, partition) for partition in topic.partitions]
    return tuple(forgotten)


def _name(topic: Message, version: int, context: RequestContext) -> str | None:
    if version < _FIRST_BY_ID:
        name: str = topic.topic
        return name
    return context.broker.metadata.name_of(topic.topic_id)


def _by_topic(
    found: Mapping[TopicPartition, Fetched], version: int, context: RequestContext
) -> tuple[list[tuple[str | UUID, list[Fetched]]], set[int]]:
    """Group the responses by topic, and collect the brokers that they name."""
    topics: dict[str, list[Fetched]] = {}
    leaders: set[int] = set()
    for partition, it in found.items():
        told = it
        if it.error_code and version >= _FIRST_WITH_LEADERS:
            told = with_leader(it, partition, context, leaders)
        topics.setdefault(partition.topic, []).append(told)
    if version < _FIRST_BY_ID:
        return list(topics.items()), leaders
    known = context.broker.metadata.topics
    return [
        (known[name].topic_id or UUID(int=0), partitions)
        for name, partitions in topics.items()
        if name in known
    ], leaders
