"""Groups whose members are different clients, each with its own assignor of one name."""

from __future__ import annotations

from contextlib import ExitStack, closing
from itertools import permutations, product
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from aiokafka.coordinator.assignors import range as aiokafka_range
from aiokafka.coordinator.assignors import roundrobin as aiokafka_roundrobin
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer
from kafka.coordinator.assignors import range as kafka_python_range
from kafka.coordinator.assignors import roundrobin as kafka_python_roundrobin

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.cluster.groups import partition_of_group
from tests.clients.consumers import Aiokafka, Java, KafkaPython, Librdkafka, Watched, wait_until_shared
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.clients.topics import Topics
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from py4j.java_gateway import JavaGateway

PARTITIONS = 6
KAFKA_PYTHON = {
    "range": kafka_python_range.RangePartitionAssignor,
    "roundrobin": kafka_python_roundrobin.RoundRobinPartitionAssignor,
}
AIOKAFKA = {
    "range": aiokafka_range.RangePartitionAssignor,
    "roundrobin": aiokafka_roundrobin.RoundRobinPartitionAssignor,
}
JAVA = {"range": "RangeAssignor", "roundrobin": "RoundRobinAssignor"}

CLIENTS: dict[str, Callable[[Topics, str], Watched]] = {
    "librdkafka": Librdkafka,
    "kafka-python": lambda topics, name: KafkaPython(topics, KAFKA_PYTHON[name]),
    "aiokafka": lambda topics, name: Aiokafka(topics, AIOKAFKA[name]),
}
ORDERS = list(permutations(CLIENTS))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3) as running:
        yield running


@pytest.fixture
def topics(cluster: Running) -> Iterator[Topics]:
    """Create two topics that outlive any one broker, and a group without other members."""
    unique = uuid4().hex
    names = (f"one-{unique}", f"two-{unique}")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in names]).values():
        made.result(WAIT_S)
    for name in names:  # A group leader that gets an error for one of them leaves it out for minutes.
        cluster.wait_until_known(name, PARTITIONS)
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap)) as producer:

        def nudge() -> None:
            for name, partition in product(names, range(PARTITIONS)):
                producer.send(name, b"wake up", partition=partition)
            producer.flush()

        yield Topics(cluster.bootstrap, f"group-{unique}", names, PARTITIONS, nudge)


@pytest.mark.parametrize("name", often(["range", "roundrobin"], "range"))
@pytest.mark.parametrize(
    "order",
    [ORDERS[0], *(pytest.param(each, marks=pytest.mark.full) for each in ORDERS[1:])],
    ids="-".join,
)
def test_members_join_and_leave_one_by_one(topics: Topics, name: str, order: tuple[str, ...]) -> None:
    """The first to join leads; the next leader is another client."""
    members: list[Watched] = []
    with ExitStack() as stack:
        for client in order:
            members.append(stack.enter_context(CLIENTS[client](topics, name)))
            wait_until_shared(topics, members)
        while len(members) > 1:
            members.pop(0).leave()
            wait_until_shared(topics, members)


@pytest.mark.parametrize("name", often(["range", "roundrobin"], "roundrobin"))
@pytest.mark.parametrize("end", [Running.stop, Running.kill], ids=["stop", "kill"])
def test_group_continues_when_its_coordinator_moves(
    cluster: Running, topics: Topics, name: str, end: Callable[[Running, int], None]
) -> None:
    """Members join and leave under the new coordinator."""
    home = partition_of_group(topics.group, 50)
    with ExitStack() as stack:
        members = [stack.enter_context(make(topics, name)) for make in CLIENTS.values()]
        wait_until_shared(topics, members)
        cluster.wait_until_known(GROUP_OFFSETS_TOPIC, 50)
        coordinator = cluster.leader_of(GROUP_OFFSETS_TOPIC, home)
        end(cluster, coordinator)
        try:
            wait_until(
                lambda: cluster.leader_of(GROUP_OFFSETS_TOPIC, home) not in (-1, coordinator),
                "another coordinator",
            )
            members.append(stack.enter_context(Librdkafka(topics, name)))
            wait_until_shared(topics, members)
            members.pop(0).leave()
            wait_until_shared(topics, members)
        finally:
            cluster.start(coordinator)
        members.pop(0).leave()
        wait_until_shared(topics, members)
    wait_until(lambda: cluster.in_sync(GROUP_OFFSETS_TOPIC, home) == {0, 1, 2}, "all in sync again")


@pytest.mark.jvm
@pytest.mark.parametrize("name", often(["range", "roundrobin"], "range"))
def test_four_clients_share_a_group(topics: Topics, gateway: JavaGateway, name: str) -> None:
    with ExitStack() as stack:
        members = [stack.enter_context(Java(topics, JAVA[name], gateway))]
        wait_until_shared(topics, members)
        members += [stack.enter_context(make(topics, name)) for make in CLIENTS.values()]
        wait_until_shared(topics, members)
        members.pop(0).leave()
        wait_until_shared(topics, members)
        members.append(stack.enter_context(Java(topics, JAVA[name], gateway)))
        wait_until_shared(topics, members)
