"""Drop-ins for kafka-python's `KafkaConsumer(partition_assignment_strategy=[…])`.

    KafkaConsumer("t", group_id="g", partition_assignment_strategy=[Sticky])
    KafkaConsumer("t", group_id="g", partition_assignment_strategy=[Range(rack="eu-1a")], client_rack="eu-1a")

A class serves any number of consumers, as the client makes an instance for each; an instance belongs
to one consumer. Rack-aware assignment needs the rack said here as well, because the client does not
tell its assignors about `client_rack`.

The client speaks both protocols, so the cooperative assignor is a real one. One thing it does not
tell an assignor is that the consumer was thrown out of its group: such a consumer claims what it
last had when it comes back. Where nobody else has it by then, a partition that is to go to a third
member is handed over at the rebalance after the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

try:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
except ImportError as error:
    raise ImportError(
        "kafka-python 3.0.12 or newer is needed for this: pip install restow[kafka-python]"
    ) from error

from restow.assignors.adapters.bridge import ASSIGNMENT_VERSION, SUBSCRIPTION_VERSION, ConsumerSeat, by_topic
from restow.assignors.registry import get
from restow.model import Member, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.assignors.base import PartitionRacks
    from restow.model import Rack

__all__ = ["CooperativeSticky", "KafkaPythonAssignor", "Range", "RoundRobin", "Sticky", "adapter"]


class KafkaPythonAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """An assignor of ours in kafka-python's clothes. Subclasses say which by its name."""

    name: ClassVar[str]

    def __init__(self, rack: Rack | None = None) -> None:
        self._seat = ConsumerSeat(self.name, rack)

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Which of the two ways to rebalance; the client takes a list, of which ours has one entry."""
        cooperative = self._seat.assignor.cooperative
        return [RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """What this consumer says when it joins."""
        said = self._seat.subscription(topics)
        owned = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=SUBSCRIPTION_VERSION,
            topics=list(said.topics),
            user_data=said.user_data,
            owned_partitions=[owned(topic=topic, partitions=list(ids)) for topic, ids in said.owned],
            generation_id=said.generation,
            rack_id=said.rack,
        )

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take note of what this consumer got."""
        self._seat.told(assignment.partitions(), generation)

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Deal out for the whole group, when this consumer is its leader."""

        def racks_of(partitions: Mapping[str, int]) -> PartitionRacks:
            return _partition_racks(cluster, partitions)

        given = self._seat.assign([_member(m) for m in members], cluster.partitions_for_topic, racks_of)
        return {
            member: ConsumerProtocolAssignment(
                ASSIGNMENT_VERSION, [(topic, list(ids)) for topic, ids in by_topic(partitions)], b""
            )
            for member, partitions in given.items()
        }


class Range(KafkaPythonAssignor):
    """Kafka's range assignor: consecutive partitions of each topic."""

    name = "range"


class RoundRobin(KafkaPythonAssignor):
    """Kafka's round-robin assignor: one partition to each in turn."""

    name = "roundrobin"


class Sticky(KafkaPythonAssignor):
    """Kafka's sticky assignor: balanced, and as little moved as possible; everybody pauses meanwhile."""

    name = "sticky"


class CooperativeSticky(KafkaPythonAssignor):
    """Kafka's cooperative-sticky assignor: as sticky, and only what moves pauses."""

    name = "cooperative-sticky"


def adapter(name: str) -> type[KafkaPythonAssignor]:
    """A drop-in class for any assignor Restow knows, also a plugged-in one."""
    get(name)
    title = "".join(word.capitalize() for word in name.replace("_", "-").split("-"))
    return type(title, (KafkaPythonAssignor,), {"name": name, "__doc__": f"The assignor {name!r}."})


def _member(joined: Any) -> Member:
    said = joined.metadata
    generation = getattr(said, "generation_id", None)
    return Member(
        id=joined.member_id,
        topics=tuple(said.topics),
        instance_id=joined.group_instance_id,
        rack=getattr(said, "rack_id", None),
        owned=tuple(
            TopicPartition(owned.topic, partition)
            for owned in getattr(said, "owned_partitions", None) or ()
            for partition in owned.partitions
        ),
        generation=generation if generation is not None and generation >= 0 else None,
        user_data=said.user_data,
    )


def _partition_racks(cluster: Any, partitions: Mapping[str, int]) -> PartitionRacks:
    brokers = [broker for broker in cluster.brokers() if broker.rack is not None]
    return {
        topic: [
            [
                broker.rack
                for broker in brokers
                if cluster.is_replica_node(TopicPartition(topic, partition), broker.node_id)
            ]
            for partition in range(count)
        ]
        for topic, count in partitions.items()
    }
