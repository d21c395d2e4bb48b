"""Converts the controller's requests from wire messages to values and back."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.replication.values import LeaderAndIsrPartition
from restow.model import TopicPartition
from restow.wire.between_brokers import LeaderAndIsrResponse, StopReplicaResponse
from restow.wire.making import maker_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from restow.wire.error_codes import ErrorCode
    from restow.wire.messages import Message

_topic_error = maker_of(LeaderAndIsrResponse.LeaderAndIsrTopicError)
_partition_error = maker_of(LeaderAndIsrResponse.LeaderAndIsrPartitionError)


class Assigned(NamedTuple):
    """A partition with a replica on this broker."""

    topic_partition: TopicPartition
    topic_id: str | None
    order: LeaderAndIsrPartition


class Stopped(NamedTuple):
    """A replica to stop, and perhaps to delete."""

    topic_partition: TopicPartition
    leader_epoch: int
    delete: bool


def text_of(topic_id: UUID | None) -> str | None:
    """Return a topic id in Kafka's text form; None without one."""
    if topic_id is None or not topic_id.int:
        return None
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def assigned(request: Message) -> Iterator[Assigned]:
    """Yield each partition of a LeaderAndIsr request."""
    for topic in request.topic_states:
        topic_id = text_of(topic.topic_id)
        for state in topic.partition_states:
            yield Assigned(TopicPartition(topic.topic_name, state.partition_index), topic_id, _order(state))


def _order(state: Message) -> LeaderAndIsrPartition:
    return LeaderAndIsrPartition(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        replicas=tuple(state.replicas),
        partition_epoch=state.partition_epoch,
        controller_epoch=state.controller_epoch,
        is_new=bool(state.is_new),
    )


def assigned_response(request: Message, codes: Mapping[TopicPartition, ErrorCode]) -> Message:
    """Build the LeaderAndIsr response, by topic id."""
    topics = []
    for topic in request.topic_states:
        found = [
            _partition_error(partition_index=state.partition_index, error_code=codes[key])
            for state in topic.partition_states
            if (key := TopicPartition(topic.topic_name, state.partition_index)) in codes
        ]
        topics.append(_topic_error(topic_id=topic.topic_id, partition_errors=found))
    return LeaderAndIsrResponse(error_code=0, topics=topics)


def stopped(request: Message) -> Iterator[Stopped]:
    """Yield each partition of a StopReplica request."""
    for topic in request.topic_states:
        for state in topic.partition_states:
            key = TopicPartition(topic.topic_name, state.partition_index)
            yield Stopped(key, state.leader_epoch, bool(state.delete_partition))


def stopped_response(codes: Mapping[TopicPartition, ErrorCode]) -> Message:
    """Build the StopReplica response."""
    kind = StopReplicaResponse.StopReplicaPartitionError
    return StopReplicaResponse(
        error_code=0,
        partition_errors=[
            kind(topic_name=key.topic, partition_index=key.partition, error_code=code)
            for key, code in codes.items()
        ],
    )
