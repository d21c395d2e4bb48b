"""Topics over the wire: describe, create, add partitions, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from restow.client.errors import BrokerError
from restow.client.link import Requests
from restow.model import Partition, Topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.client.values import NewTopic
    from restow.model import BrokerId
    from restow.wire.messages import Message

_NO_ID = UUID(int=0)


class TopicRequests(Requests):
    """Requests about topics."""

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        """Return topics. A missing one is an error if named; among all, incomplete ones are left out."""
        wanted = (
            None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        )
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, min_version=4)
        answer = await self._link.ask_anyone(request)
        found = []
        for topic in answer.topics:
            if topic.error_code and names is not None:
                needs = f"DESCRIBE on topic {topic.name}"
                raise BrokerError(ErrorCode.of(topic.error_code), f"topic {topic.name!r}", needs)
            if not topic.error_code:
                found.append(_topic(topic))
        return tuple(sorted(found, key=lambda topic: topic.name))

    async def create_topics(self, topics: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]:
        make = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[
                make(
                    name=topic.name,
                    num_partitions=-1 if topic.by_hand else topic.partitions,
                    replication_factor=-1 if topic.by_hand else topic.replication_factor,
                    assignments=[
                        make.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                        for number, replicas in sorted(topic.by_hand.items())
                    ],
                    configs=[
                        make.CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs.items()
                    ],
                )
                for topic in topics
            ],
            timeout_ms=self._link.timeout_ms,
            validate_only=False,
        )
        answer = await self._link.ask_controller(request, _code_of_topics)
        needs = "CREATE on the cluster"
        return {
            each.name: BrokerError.of(each.error_code, each.error_message, needs) for each in answer.topics
        }

    async def create_partitions(
        self, topic: str, partitions: int, by_hand: Sequence[Sequence[BrokerId]] | None = None
    ) -> None:
        wanted = CreatePartitionsRequest.CreatePartitionsTopic
        hand = None
        if by_hand is not None:
            hand = [wanted.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in by_hand]
        request = CreatePartitionsRequest(
            topics=[wanted(name=topic, count=partitions, assignments=hand)],
            timeout_ms=self._link.timeout_ms,
            validate_only=False,
        )
        answer = await self._link.ask_controller(request, lambda got: got.results[0].error_code)
        (result,) = answer.results
        BrokerError.check(result.error_code, result.error_message, f"ALTER on topic {topic}")

    async def delete_topics(self, topics: Iterable[str]) -> Mapping[str, BrokerError | None]:
        names = tuple(topics)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names],
            topic_names=list(names),
            timeout_ms=self._link.timeout_ms,
        )
        answer = await self._link.ask_controller(
            request, lambda got: next((each.error_code for each in got.responses), 0)
        )
        return {
            each.name: BrokerError.of(each.error_code, each.error_message, f"DELETE on topic {each.name}")
            for each in answer.responses
        }


def _topic(topic: Message) -> Topic:
    partitions = (
        Partition(
            number=each.partition_index,
            replicas=tuple(each.replica_nodes),
            isr=tuple(each.isr_nodes),
            leader=each.leader_id if each.leader_id >= 0 else None,
        )
        for each in topic.partitions
    )
    identity = topic.topic_id
    return Topic(
        name=topic.name,
        partitions=tuple(sorted(partitions, key=lambda partition: partition.number)),
        id=str(identity) if identity and identity != _NO_ID else None,
        internal=topic.is_internal,
    )


def _code_of_topics(answer: Message) -> int:
    return next((each.error_code for each in answer.topics), 0)
