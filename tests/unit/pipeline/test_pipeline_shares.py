"""The cut of a cluster into one share per broker."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from restow.client import ClusterView, Node
from restow.model import Partition, Topic, TopicPartition
from restow.pipeline.sampling.shares import NOBODY, nobody, shares_of


def view(*brokers: int) -> ClusterView:
    nodes = tuple(Node(id=each, host="h", port=9000 + each, rack=f"r{each}") for each in brokers)
    return ClusterView(cluster_id="c", nodes=nodes)


def topic(
    name: str,
    *replicas: tuple[int, ...],
    leaders: tuple[int | None, ...] = (),
    topic_id: str | None = "i",
) -> Topic:
    led = leaders or tuple(each[0] for each in replicas)
    partitions = (
        Partition(number=number, replicas=who, isr=who, leader=leader)
        for number, (who, leader) in enumerate(zip(replicas, led, strict=True))
    )
    return Topic(name=name, partitions=tuple(partitions), id=topic_id)


def test_share_has_the_broker_address_and_its_leaders() -> None:
    one, two = shares_of(view(1, 2), [topic("t", (1, 2), (2, 1), (1, 2)), topic("u", (2,), topic_id=None)])
    assert (one.cluster, one.broker, one.address, one.rack) == ("c", 1, "h:9001", "r1")
    assert list(one.led()) == [TopicPartition("t", 0), TopicPartition("t", 2)]
    assert list(two.led()) == [TopicPartition("t", 1), TopicPartition("u", 0)]
    assert (one.topic_ids, two.topic_ids) == ({"t": "i"}, {"t": "i"})


def test_shares_read_topics_of_leaderless_partitions() -> None:
    [one] = shares_of(view(1), [topic("t", (7, 1), (1, 7), leaders=(7, None))])
    assert list(one.led()) == []
    assert one.topics == ("t",)


def test_share_puts_an_ipv6_address_in_brackets() -> None:
    node = Node(id=1, host="::1", port=9092)
    [one] = shares_of(ClusterView(cluster_id="c", nodes=(node,)), [])
    assert one.address == "[::1]:9092"


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 7))
def test_shares_contain_every_topic_once_and_evenly(sizes: list[int], brokers: int) -> None:
    topics = [topic(f"t{number}", *[(0,)] * size) for number, size in enumerate(sizes)]
    shares = shares_of(view(*range(brokers)), topics)
    dealt = [name for share in shares for name in share.topics]
    assert sorted(dealt) == sorted(each.name for each in topics)
    loads = [sum(sizes[int(name[1:])] for name in share.topics) for share in shares]
    assert max(loads) - min(loads) <= max(sizes, default=0)


def test_shares_can_be_pickled() -> None:
    for share in (*shares_of(view(1), [topic("t", (1,))]), nobody("c", "it is down")):
        assert pickle.loads(pickle.dumps(share)) == share  # noqa: S301
    assert nobody("c", "it is down").broker == NOBODY
