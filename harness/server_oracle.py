"""Results of the assignors in Apache Kafka's brokers (`uniform` and `range`, since 4.0), over a gateway.

The group is built in Kafka's own collections: each member's last target assignment is read from the bytes of
a record, and a `ConsumerGroup` derives from them which partitions are assigned. Members, topics and
partitions are handed over in the order in which our assignors take them, so that no result depends on the
order of a hash map. Topic ids are counted up from 2 (0 and 1 are reserved), which makes Java's hash sets keep
their order.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from restow.assignors.group import java_order
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from py4j.java_gateway import JavaGateway, JavaObject

    from restow.assignors import Assignment
    from restow.model import Member

SERVER_ASSIGNORS = {"uniform": "UniformAssignor", "range": "RangeAssignor"}

_FIRST_TOPIC = 2
_TOPIC = re.compile(r"TopicPartition\(topicId=([^,]+), partitions=\[([^]]*)\]\)")


class ServerOracle:
    """The assignors of a broker, on one gateway."""

    def __init__(self, gateway: JavaGateway) -> None:
        self.jvm = gateway.jvm
        self._numbered = gateway.jvm.java.util.TreeMap()
        self._count = 0

    def __repr__(self) -> str:
        return "ServerOracle()"

    def group(self, name: str, *, partitions: Mapping[str, int], members: Sequence[Member]) -> ServerGroup:
        """Build a group for the assignor of that name."""
        return ServerGroup(self, name, partitions, members)

    def assign(self, name: str, *, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignment:
        """Return the assignment of the broker's assignor of that name; every member is a key."""
        group = self.group(name, partitions=partitions, members=members)
        return {member.id: [] for member in members} | group.read(group.assign())

    def topic_of_size(self, count: int) -> JavaObject:
        """Return a map from this many partition numbers to nothing."""
        while self._count < count:
            self._numbered.put(self._count, None)
            self._count += 1
        return self.jvm.java.util.HashMap(self._numbered.headMap(count))


class ServerGroup:
    """A group built in Java, so that a broker's assignor can run any number of times."""

    def __init__(
        self, oracle: ServerOracle, name: str, partitions: Mapping[str, int], members: Sequence[Member]
    ) -> None:
        self._oracle = oracle
        self._jvm = oracle.jvm
        self._group = oracle.jvm.org.apache.kafka.coordinator.group
        self._name = name
        self._uuid: dict[str, JavaObject] = {}
        # Kafka's broker resolves names to ids first, so its assignors never see a topic that does not exist.
        self._topics = sorted((topic for topic, count in partitions.items() if count), key=java_order)
        for number, topic in enumerate(self._topics, _FIRST_TOPIC):
            self._uuid[topic] = self._jvm.org.apache.kafka.common.Uuid(0, number)
        self._topic_of = {uuid.toString(): topic for topic, uuid in self._uuid.items()}
        self._describer = self._describe(partitions)
        self._spec = self._specify(partitions, sorted(members, key=lambda member: java_order(member.id)))

    def ready(self) -> Callable[[], JavaObject]:
        """Return one call of a new assignor, for timing."""
        assignor = getattr(self._group.assignor, SERVER_ASSIGNORS[self._name])()
        return partial(assignor.assign, self._spec, self._describer)

    def assign(self) -> JavaObject:
        """Return Kafka's result. It stays in Java until `read`."""
        return self.ready()()

    def read(self, answer: JavaObject) -> Assignment:
        """Return a result of `assign` as Python values, sorted."""
        helpers = self._group.GroupCoordinatorRecordHelpers
        given: Assignment = {}
        for entry in answer.members().entrySet():
            member = entry.getKey()
            record = helpers.newConsumerGroupTargetAssignmentRecord(
                "g", member, entry.getValue().partitions()
            )
            found = _TOPIC.findall(record.value().message().toString())
            given[member] = sorted(
                TopicPartition(self._topic_of[uuid], int(number))
                for uuid, numbers in found
                for number in numbers.split(", ")
                if number
            )
        return given

    def _specify(self, partitions: Mapping[str, int], members: Sequence[Member]) -> JavaObject:
        modern = self._group.modern
        log_context = self._jvm.org.apache.kafka.common.utils.LogContext()
        registry = self._jvm.org.apache.kafka.timeline.SnapshotRegistry(log_context)
        inverted = modern.consumer.ConsumerGroup(log_context, registry, "g")
        optional = self._jvm.java.util.Optional
        subscribed: dict[frozenset[str], JavaObject] = {}
        specs = self._jvm.java.util.LinkedHashMap()
        for member in members:
            topics = frozenset(topic for topic in member.topics if topic in self._uuid)
            if topics not in subscribed:
                subscribed[topics] = self._assignment(dict.fromkeys(topics, ())).partitions().keySet()
            held = [p for p in member.owned if p.partition < partitions.get(p.topic, 0)]
            target = modern.Assignment(self._in_order(_by_topic(held)))
            inverted.updateTargetAssignment(member.id, target)
            instance, rack = optional.ofNullable(member.instance_id), optional.ofNullable(member.rack)
            specs.put(
                member.id,
                modern.MemberSubscriptionAndAssignmentImpl(rack, instance, subscribed[topics], target),
            )
        kinds = self._group.api.assignor.SubscriptionType
        kind = kinds.HOMOGENEOUS if len(subscribed) <= 1 else kinds.HETEROGENEOUS
        return modern.GroupSpecImpl(specs, kind, inverted.invertedTargetAssignment())

    def _in_order(self, held: Mapping[str, Sequence[int]]) -> JavaObject:
        """Return partitions by topic as a map and sets that iterate in order."""
        read = self._assignment(held).partitions()
        ordered = self._jvm.java.util.LinkedHashMap()
        for topic in sorted(held, key=java_order):
            uuid = self._uuid[topic]
            ordered.put(uuid, self._jvm.java.util.TreeSet(read.get(uuid)))
        return ordered

    def _assignment(self, held: Mapping[str, Sequence[int]]) -> JavaObject:
        number = {topic: index for index, topic in enumerate(self._topics, _FIRST_TOPIC)}
        data = encode_target({number[topic]: ids for topic, ids in held.items()})
        accessor = self._jvm.org.apache.kafka.common.protocol.ByteBufferAccessor(
            self._jvm.java.nio.ByteBuffer.wrap(data)
        )
        value = self._group.generated.ConsumerGroupTargetAssignmentMemberValue(accessor, 0)
        return self._group.modern.Assignment.fromRecord(value)

    def _describe(self, partitions: Mapping[str, int]) -> JavaObject:
        """Return the cluster's metadata; assignors ask only for the number of a topic's partitions."""
        image = self._jvm.org.apache.kafka.image
        counts = {partitions[topic] for topic in self._topics}
        sizes = {count: self._oracle.topic_of_size(count) for count in counts}
        topics = image.TopicsImage.EMPTY
        for topic in self._topics:
            topics = topics.including(image.TopicImage(topic, self._uuid[topic], sizes[partitions[topic]]))
        empty = image.MetadataImage.EMPTY
        whole = image.MetadataImage(
            empty.provenance(),
            empty.features(),
            empty.cluster(),
            topics,
            empty.configs(),
            empty.clientQuotas(),
            empty.producerIds(),
            empty.acls(),
            empty.scram(),
            empty.delegationTokens(),
        )
        runtime = self._jvm.org.apache.kafka.coordinator.common.runtime
        return self._group.modern.SubscribedTopicDescriberImpl(runtime.KRaftCoordinatorMetadataImage(whole))


def encode_target(topics: Mapping[int, Sequence[int]]) -> bytes:
    """Encode the value of a ConsumerGroupTargetAssignmentMember record (version 0)."""
    parts = [_count(len(topics))]
    for number, ids in topics.items():
        parts += [struct.pack(">qq", 0, number), _count(len(ids)), struct.pack(f">{len(ids)}i", *ids), b"\0"]
    return b"".join((*parts, b"\0"))


def _by_topic(held: Iterable[TopicPartition]) -> dict[str, list[int]]:
    return {topic: [p.partition for p in row] for topic, row in groupby(sorted(held), lambda p: p.topic)}


def _count(length: int) -> bytes:
    """Encode a compact array's length: one more, as an unsigned varint."""
    value, data = length + 1, bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes((*data, value))
