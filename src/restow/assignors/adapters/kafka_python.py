"""Drop-ins for kafka-python's `KafkaConsumer(partition_assignment_strategy=[…])`.

    KafkaConsumer("t", group_id="g", partition_assignment_strategy=[Sticky])
    KafkaConsumer("t", group_id="g", partition_assignment_strategy=[Range(rack="eu-1a")], client_rack="eu-1a")

A class serves any number of consumers, because the client makes an instance for each; an instance belongs to
one consumer. Rack-aware assignment needs the rack here as well, because the client does not pass
`client_rack` to its assignors.

The client supports both protocols, so the cooperative assignor is a real one. The client does not tell an
assignor that its consumer was removed from the group: such a consumer claims its last partitions when it
comes back. If no other member has them by then, a partition for a third member is given out one rebalance
later.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

try:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
except ImportError as error:
    raise ImportError(
        "kafka-python 3.0.12 or newer is needed for this: pip install restow[kafka-python]"
    ) from error

from restow.assignors.adapters.consumer_state import (
    SUBSCRIPTION_VERSION,
    ConsumerState,
    assignment_fields,
    class_for,
)
from restow.assignors.lag_aware import LagAware as OurLagAware
from restow.assignors.registry import get
from restow.model import Member, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from restow.assignors.base import Assignor, PartitionRacks
    from restow.model import Rack

__all__ = [
    "CooperativeSticky",
    "KafkaPythonAssignor",
    "LagAware",
    "Range",
    "RoundRobin",
    "Sticky",
    "adapter",
]

log = logging.getLogger(__name__)


class KafkaPythonAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Adapts one of our assignors to kafka-python. Subclasses name the assignor."""

    name: ClassVar[str]

    def __init__(self, rack: Rack | None = None) -> None:
        self._consumer = ConsumerState(self.made(), rack)

    def made(self) -> Assignor:
        """Return the assignor that this consumer uses."""
        return get(self.name)

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the rebalance protocol; the client takes a list, of which ours has one entry."""
        cooperative = self._consumer.assignor.cooperative
        return [RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return this consumer's subscription."""
        said = self._consumer.subscription(topics)
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
        """Remember this consumer's assignment."""
        self._consumer.remember(assignment.partitions(), generation)

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Assign the partitions of the whole group, when this consumer is its leader."""

        def racks_of(partitions: Mapping[str, int]) -> PartitionRacks:
            return _partition_racks(cluster, partitions)

        given = self._consumer.assign([_member(m) for m in members], cluster.partitions_for_topic, racks_of)
        return {
            member: ConsumerProtocolAssignment(*assignment_fields(partitions))
            for member, partitions in given.items()
        }


class Range(KafkaPythonAssignor):
    """Kafka's range assignor: consecutive partitions of each topic."""

    name = "range"


class RoundRobin(KafkaPythonAssignor):
    """Kafka's round-robin assignor: one partition to each in turn."""

    name = "roundrobin"


class Sticky(KafkaPythonAssignor):
    """Kafka's sticky assignor: balanced, and as little moved as possible; all members pause meanwhile."""

    name = "sticky"


class CooperativeSticky(KafkaPythonAssignor):
    """Kafka's cooperative-sticky assignor: like sticky, but only partitions that move pause."""

    name = "cooperative-sticky"


class LagAware(KafkaPythonAssignor):
    """Balances expected work. `measure` returns that of the partitions that this consumer reads.

        LagAware(lambda: {p: consumer.highwater(p) - consumer.position(p) for p in consumer.assignment()})

    Without it, all partitions that nobody measures count alike.
    """

    name = "lag-aware"

    def __init__(
        self,
        measure: Callable[[], Mapping[tuple[str, int], float]] | None = None,
        rack: Rack | None = None,
        **limits: Any,
    ) -> None:
        self._measure, self._limits = measure, limits
        super().__init__(rack)

    def made(self) -> Assignor:
        return OurLagAware(None if self._measure is None else self._measured, **self._limits)

    def _measured(self) -> Mapping[TopicPartition, float]:
        """Return the measured work; a measure that fails must not keep the consumer from joining."""
        try:
            found = self._measure() if self._measure is not None else {}
            return {TopicPartition(*where): float(amount) for where, amount in found.items()}
        except Exception:
            log.warning("the work of partitions could not be measured", exc_info=True)
            return {}


def adapter(name: str) -> type[KafkaPythonAssignor]:
    """Return a drop-in class for any assignor that Restow knows, plugins included."""
    return class_for(name, KafkaPythonAssignor)


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
