"""Results of Apache Kafka's own placement and assignors, over a gateway of `kafka_jvm`.

Brokers, metadata and subscriptions are sent as bytes of Kafka's protocol, and each result comes back as one
string, because every call between the two processes costs the same.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from restow.assignors.user_data import encode_claim, encode_generation
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from py4j.java_gateway import JavaGateway, JavaObject

    from restow.assignors import PartitionRacks
    from restow.model import Broker, Member, Rack

ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}

_METADATA_VERSION = 1
_SUBSCRIPTION_VERSION = 3
_NO_GENERATION = -1
_NO_LEADER = -1
_PLACED = re.compile(r"(\d+)=\[([^]]*)\]")
_ASSIGNED = re.compile(r"Assignment\(partitions=\[([^]]*)\]")


class JavaError(NamedTuple):
    """Kafka's exception: the class without its package, and the message."""

    name: str
    message: str | None


def java_place(
    gateway: JavaGateway,
    brokers: Sequence[Broker],
    *,
    partitions: int,
    replication_factor: int,
    start_index: int = -1,
    start_partition: int = -1,
) -> dict[int, list[int]] | JavaError:
    """Return AdminUtils' placement: rack-aware if all brokers have racks, refused if only some do."""
    answer = ask_place(
        gateway, java_brokers(gateway, brokers), partitions, replication_factor, start_index, start_partition
    )
    if isinstance(answer, JavaError):
        return answer
    return {
        int(partition): [int(broker) for broker in replicas.split(", ")]
        for partition, replicas in _PLACED.findall(answer.toString())
    }


def java_brokers(gateway: JavaGateway, brokers: Iterable[Broker]) -> JavaObject:
    """Return a Java list of brokers, for any number of placements."""
    metadata = gateway.jvm.org.apache.kafka.admin.BrokerMetadata
    optional = gateway.jvm.java.util.Optional
    racks: dict[Rack | None, Any] = {}
    built = gateway.jvm.java.util.ArrayList()
    for broker in brokers:
        if broker.rack not in racks:
            racks[broker.rack] = optional.ofNullable(broker.rack)
        built.add(metadata(broker.id, racks[broker.rack]))
    return built


def ask_place(
    gateway: JavaGateway,
    brokers: JavaObject,
    partitions: int,
    replication_factor: int,
    start_index: int,
    start_partition: int,
) -> JavaObject | JavaError:
    """Call AdminUtils once, for timing. The result stays in Java."""
    from py4j.protocol import Py4JJavaError

    try:
        return gateway.jvm.org.apache.kafka.admin.AdminUtils.assignReplicasToBrokers(
            brokers, partitions, replication_factor, start_index, start_partition
        )
    except Py4JJavaError as error:
        return _java_error(error)


def java_assign(
    gateway: JavaGateway,
    name: str,
    *,
    partitions: Mapping[str, int],
    members: Sequence[Member],
    partition_racks: PartitionRacks | None = None,
) -> dict[str, list[TopicPartition]] | JavaError:
    """Return the assignment of Kafka's assignor of that name."""
    from py4j.protocol import Py4JJavaError

    group = JavaGroup(gateway, name, partitions=partitions, members=members, partition_racks=partition_racks)
    try:
        return group.read(group.assign())
    except Py4JJavaError as error:
        return _java_error(error)


class Oracle:
    """`java_place` and `java_assign` on one gateway, as an argument that test frameworks can print."""

    def __init__(self, gateway: JavaGateway) -> None:
        self.place = partial(java_place, gateway)
        self.assign = partial(java_assign, gateway)

    def __repr__(self) -> str:
        return "Oracle()"


class JavaGroup:
    """A group built in Java, so that Kafka's assignor can run any number of times."""

    def __init__(
        self,
        gateway: JavaGateway,
        name: str,
        *,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> None:
        jvm = gateway.jvm
        consumer = jvm.org.apache.kafka.clients.consumer
        self._gateway = gateway
        self._name = name
        self._consumer = consumer
        # A HashMap, as the consumer's coordinator passes it to its assignor.
        self._subscriptions = jvm.java.util.HashMap()
        self._user_data: list[JavaObject] = []
        protocol = consumer.internals.ConsumerProtocol
        wrap = jvm.java.nio.ByteBuffer.wrap
        for member in members:
            subscription = protocol.deserializeSubscription(wrap(encode_subscription(name, member)))
            if member.instance_id is not None:
                subscription.setGroupInstanceId(jvm.java.util.Optional.of(member.instance_id))
            if name == "sticky" and (user_data := subscription.userData()) is not None:
                self._user_data.append(user_data)
            self._subscriptions.put(member.id, subscription)
        common = jvm.org.apache.kafka.common
        metadata = common.message.MetadataResponseData(
            common.protocol.ByteBufferAccessor(wrap(encode_metadata(partitions, partition_racks))),
            _METADATA_VERSION,
        )
        self._cluster = common.requests.MetadataResponse(metadata, _METADATA_VERSION).buildCluster()
        self._members = sorted((member.id for member in members), key=lambda name: name.encode("utf-16-be"))

    def ready(self) -> Callable[[], JavaObject]:
        """Return one call of a new assignor, for timing. Prepare again for another call.

        Kafka's sticky assignor reads the user data's buffers to their end, so they are rewound here.
        """
        for user_data in self._user_data:
            user_data.rewind()
        assignor = getattr(self._consumer, ASSIGNORS[self._name])()
        group = self._consumer.ConsumerPartitionAssignor.GroupSubscription(self._subscriptions)
        return partial(assignor.assign, self._cluster, group)

    def assign(self) -> JavaObject:
        """Return Kafka's result. It stays in Java until `read`."""
        return self.ready()()

    def read(self, answer: JavaObject) -> dict[str, list[TopicPartition]]:
        """Return a result of `assign` as Python values, in Kafka's order."""
        by_member = self._gateway.jvm.java.util.TreeMap(answer.groupAssignment())
        listed = _ASSIGNED.findall(by_member.toString())
        return {
            member: [_topic_partition(text) for text in partitions.split(", ") if text]
            for member, partitions in zip(self._members, listed, strict=True)
        }


def encode_subscription(name: str, member: Member) -> bytes:
    """Encode a member's subscription (version 3) with the assignor's user data."""
    user_data = member.user_data
    if user_data is None and member.generation is not None:
        if name == "sticky":
            user_data = encode_claim(member.owned, member.generation)
        elif name == "cooperative-sticky":
            user_data = encode_generation(member.generation)
    owned: dict[str, list[int]] = {}
    for topic, partition in member.owned:
        owned.setdefault(topic, []).append(partition)
    generation = _NO_GENERATION if member.generation is None else member.generation
    return b"".join(
        (
            struct.pack(">hi", _SUBSCRIPTION_VERSION, len(member.topics)),
            *map(_string, member.topics),
            struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data,
            struct.pack(">i", len(owned)),
            *(_string(topic) + _int32s(ids) for topic, ids in owned.items()),
            struct.pack(">i", generation),
            _string(member.rack),
        )
    )


def encode_metadata(partitions: Mapping[str, int], partition_racks: PartitionRacks | None = None) -> bytes:
    """Encode a metadata response (version 1) with one broker per rack and no leaders."""
    partition_racks = partition_racks or {}
    nodes: dict[Rack | None, int] = {}
    topics = []
    for topic, count in partitions.items():
        racks = partition_racks.get(topic)
        parts = [struct.pack(">h", 0), _string(topic), struct.pack(">?i", False, count)]
        for partition in range(count):
            replicas = [nodes.setdefault(rack, len(nodes)) for rack in racks[partition]] if racks else []
            parts.append(struct.pack(">hii", 0, partition, _NO_LEADER) + _int32s(replicas) * 2)
        topics.append(b"".join(parts))
    brokers = [
        struct.pack(">i", node) + _string("localhost") + struct.pack(">i", 9092) + _string(rack)
        for rack, node in nodes.items()
    ]
    return b"".join(
        (
            struct.pack(">i", len(brokers)),
            *brokers,
            struct.pack(">i", -1),
            struct.pack(">i", len(topics)),
            *topics,
        )
    )


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _int32s(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)


def _topic_partition(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def _java_error(error: Any) -> JavaError:
    thrown = error.java_exception
    return JavaError(thrown.getClass().getSimpleName(), thrown.getMessage())
