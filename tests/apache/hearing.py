"""Wait until all brokers know what the controller knows."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from restow.client import ConfigResource, NewTopic
from restow.model import TopicPartition
from restow.wire.messages import DescribeConfigsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.client import KafkaAdmin, PartitionReassignment

PATIENCE_S = 120.0
_PAUSE_S = 0.05
_MARKER = "marker"
_KEY = "retention.ms"
_TOPIC = 2
_numbers = count(1_000_000)


class Seen(NamedTuple):
    """One partition in a broker's metadata."""

    replicas: tuple[int, ...]
    isr: frozenset[int]


async def prepare_marker(admin: KafkaAdmin, broker: int) -> None:
    """Create the topic whose configs show how recent a broker's metadata is."""
    assert await admin.create_topics([NewTopic(name=_MARKER, by_hand={0: (broker,)})]) == {_MARKER: None}


async def until_heard(admin: KafkaAdmin, brokers: Sequence[int]) -> None:
    """Wait until every broker shows a change that is made now.

    Brokers of a quorum learn of changes in their order, so they then know all earlier ones.
    """
    value = str(next(_numbers))
    of = ConfigResource("topic", _MARKER)
    assert await admin.incremental_alter_configs({of: {_KEY: value}}) == {of: None}
    deadline = time.monotonic() + PATIENCE_S
    for broker in brokers:
        while await _told(admin, broker) != value:
            assert time.monotonic() < deadline, f"broker {broker} does not hear of a change"
            await asyncio.sleep(_PAUSE_S)


async def _told(admin: KafkaAdmin, broker: int) -> str | None:
    asked = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=_MARKER, configuration_keys=[_KEY]
    )
    answer = await admin._link.ask(DescribeConfigsRequest(resources=[asked]), broker)
    return next((each.value for result in answer.results for each in result.configs), None)


async def views(
    admin: KafkaAdmin, brokers: Sequence[int], topics: Sequence[str]
) -> list[dict[TopicPartition, Seen]]:
    """Return each broker's metadata."""
    found = []
    for broker in brokers:
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        answer = await admin._link.ask(MetadataRequest(topics=names), broker)
        found.append(
            {
                TopicPartition(topic.name, each.partition_index): Seen(
                    tuple(each.replica_nodes), frozenset(each.isr_nodes)
                )
                for topic in answer.topics
                for each in topic.partitions
            }
        )
    return found


async def agreed(
    admin: KafkaAdmin, brokers: Sequence[int], topics: Sequence[str]
) -> tuple[Mapping[TopicPartition, PartitionReassignment], Mapping[TopicPartition, tuple[int, ...]]] | None:
    """Return the controller's reassignments, and the replicas that all brokers agree on; None if they differ.

    Brokers are asked between two looks at the reassignments, after they know of those ended by the first.
    """
    moving = await admin.list_partition_reassignments()
    await until_heard(admin, brokers)
    told = [
        {name: each.replicas for name, each in view.items()} for view in await views(admin, brokers, topics)
    ]
    if any(view != told[0] for view in told) or await admin.list_partition_reassignments() != moving:
        return None
    if any(told[0].get(name) != move.replicas for name, move in moving.items()):
        return None
    return moving, told[0]
