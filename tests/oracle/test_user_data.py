"""Our codec of sticky user data against Kafka's, on good, bad and damaged bytes."""

from __future__ import annotations

import re
import struct
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from restow.assignors.user_data import decode_claim, encode_claim
from restow.model import TopicPartition
from tests.oracle.cases import CASES
from tests.seeds import seeded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

STICKY = "org.apache.kafka.clients.consumer.StickyAssignor"
MEMBER_DATA = "org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor$MemberData"
TOPICS = ("a", "topic-1", "", "é", "日本", "\U0001f600", "x" * 249)


class Java:
    """StickyAssignor's own private serializer and deserializer."""

    def __init__(self, gateway: JavaGateway) -> None:
        from py4j.java_gateway import get_field

        self._get_field = get_field
        self._gateway = gateway
        self._jvm = gateway.jvm
        methods = self._jvm.java.lang.Class.forName(STICKY).getDeclaredMethods()
        self._read = self._method(methods, "deserializeTopicPartitionAssignment")
        self._write = self._method(methods, "serializeTopicPartitionAssignment")
        constructors = self._jvm.java.lang.Class.forName(MEMBER_DATA).getConstructors()
        (self._member_data,) = [c for c in constructors if c.getParameterCount() == 2]

    @staticmethod
    def _method(methods: Any, name: str) -> Any:
        (method,) = [method for method in methods if method.getName() == name]
        method.setAccessible(True)
        return method

    def decode(self, data: bytes) -> tuple[str, str]:
        """Return partitions and generation in Java's text form."""
        read = self._call(self._read, self._jvm.java.nio.ByteBuffer.wrap(data))
        return tuple(self._get_field(read, name).toString() for name in ("partitions", "generation"))

    def encode(self, owned: Sequence[TopicPartition], generation: int) -> bytes:
        partitions = self._jvm.java.util.ArrayList()
        for topic, partition in owned:
            partitions.add(self._jvm.org.apache.kafka.common.TopicPartition(topic, partition))
        said = self._jvm.java.util.Optional.of(generation)
        arguments = self._arguments(partitions, said)
        return bytes(self._call(self._write, self._member_data.newInstance(arguments)).array())

    def _call(self, method: Any, *arguments: Any) -> Any:
        return method.invoke(None, self._arguments(*arguments))

    def _arguments(self, *arguments: Any) -> Any:
        array = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for i, argument in enumerate(arguments):
            array[i] = argument
        return array


@pytest.fixture(scope="module")
def java(gateway: JavaGateway) -> Java:
    return Java(gateway)


def in_javas_words(data: bytes) -> tuple[str, str]:
    """Return what we decode in Java's text form."""
    owned, generation = decode_claim(data)
    listed = ", ".join(f"{topic}-{partition}" for topic, partition in owned)
    return f"[{listed}]", "Optional.empty" if generation is None else f"Optional[{generation}]"


def alike(read: tuple[str, str]) -> tuple[str, str]:
    """Normalize replacement characters: invalid UTF-8 becomes one or several; no topic name has any."""
    return re.sub("\ufffd+", "\ufffd", read[0]), read[1]


def claims(random: Random) -> tuple[tuple[TopicPartition, ...], int | None]:
    """Return partitions of some topics, and perhaps a generation."""
    topics = random.sample(TOPICS, random.randint(0, 3))
    owned = [TopicPartition(t, random.randint(0, 99)) for t in topics for _ in range(random.randint(1, 3))]
    return tuple(owned), random.choice((None, 0, 7, 2**31 - 1, -1))


def mutilated(data: bytes, random: Random) -> bytes:
    """Return the bytes with damage that a network, a disk or a stranger might cause."""
    at = random.randint(0, len(data))
    match random.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data + random.randbytes(random.randint(1, 9))
        case 2:
            return data[:at] + random.randbytes(1) + data[at + 1 :]
        case 3:
            return data[:at] + random.randbytes(random.randint(1, 5)) + data[at:]
        case 4:
            return data[:at] + data[at + random.randint(1, 5) :]
        case _:
            length = random.choice((-1, -(2**31), 0, 1, 2, 2**16, 2**31 - 1))
            return data[: at - at % 4] + struct.pack(">i", length) + data[at - at % 4 + 4 :]


def strange_bytes(random: Random) -> Iterator[bytes]:
    while True:
        data = encode_claim(*claims(random))
        yield data
        for _ in range(random.randint(1, 4)):
            data = mutilated(data, random)
            yield data
        yield random.randbytes(random.randint(1, 12))


def test_decode_of_any_bytes_equals_that_of_kafka(java: Java) -> None:
    source = strange_bytes(Random(seeded(1)))
    outcomes = set()
    for _ in range(10 * CASES):
        data = next(source)
        if not data:  # Kafka does not decode then
            continue
        kafkas = java.decode(data)
        assert alike(in_javas_words(data)) == alike(kafkas), data.hex()
        outcomes.add((kafkas[0] == "[]", kafkas[1] == "Optional.empty", kafkas[1] == "Optional[-1]"))
    # The cases include nothing read, nothing owned, v0 and v1.
    assert {
        (True, False, True),
        (True, False, False),
        (False, True, False),
        (False, False, False),
    } <= outcomes


@pytest.mark.parametrize("generation", [None, 5])
def test_decode_of_truncated_bytes_equals_that_of_kafka(java: Java, generation: int | None) -> None:
    whole = encode_claim((TopicPartition("a", 0), TopicPartition("é", 7), TopicPartition("é", 8)), generation)
    for length in range(1, len(whole) + 1):
        assert in_javas_words(whole[:length]) == java.decode(whole[:length]), length


def test_empty_user_data_equals_missing_user_data(gateway: JavaGateway, java: Java) -> None:
    """Kafka checks for remaining bytes before it decodes."""
    consumer = gateway.jvm.org.apache.kafka.clients.consumer
    topics = gateway.jvm.java.util.Collections.emptyList()
    subscription = consumer.ConsumerPartitionAssignor.Subscription(
        topics, gateway.jvm.java.nio.ByteBuffer.wrap(b"")
    )
    methods = gateway.jvm.java.lang.Class.forName(STICKY).getDeclaredMethods()
    method = java._method(methods, "memberData")
    data = method.invoke(consumer.StickyAssignor(), java._arguments(subscription))
    read = tuple(java._get_field(data, name).toString() for name in ("partitions", "generation"))
    assert in_javas_words(b"") == read


def test_encode_of_one_topic_equals_that_of_kafka(java: Java) -> None:
    """With a generation: Kafka no longer writes the older schema without one."""
    random = Random(seeded(2))
    for topic in TOPICS:
        for generation in (0, 5, -1, 2**31 - 1):
            owned = tuple(TopicPartition(topic, p) for p in random.sample(range(200), random.randint(1, 20)))
            assert encode_claim(owned, generation) == java.encode(owned, generation)


def test_encode_of_several_topics_equals_that_of_kafka_in_its_order(java: Java) -> None:
    """Kafka uses Java's hash order; given the partitions in that order, we write the same."""
    random = Random(seeded(3))
    for _ in range(CASES // 3):
        owned, _ = claims(random)
        kafkas = java.encode(owned, generation := random.randint(0, 999))
        read = decode_claim(kafkas)
        assert (sorted(read.owned), read.generation) == (sorted(owned), generation)
        assert encode_claim(read.owned, read.generation) == kafkas
