"""A cluster cut into one share per broker: the topics and partitions to ask it about."""

from __future__ import annotations

import heapq
from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from restow.client import ClusterView, Node
    from restow.model import Topic

NOBODY = -1


@frozen
class Share:
    """One broker's part.

    The broker itself reports its replicas, log dirs and groups. The leader reports offsets. All brokers know
    the assignment, so each is asked about some of the topics. A share without an address has the reason why.
    """

    cluster: str
    broker: int
    address: str = ""
    rack: str | None = None
    leads: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The partitions that it leads, by topic."""
    topics: tuple[str, ...] = ()
    """Topics whose assignment it is asked for."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the topics that it has replicas of."""
    problem: str = ""

    def led(self) -> Iterator[TopicPartition]:
        for topic, numbers in self.leads.items():
            for number in numbers:
                yield TopicPartition(topic, number)


def shares_of(view: ClusterView, topics: Sequence[Topic]) -> list[Share]:
    """Return one share for every broker, in order."""
    brokers = [node.id for node in view.nodes]
    leads: dict[int, dict[str, list[int]]] = {broker: {} for broker in brokers}
    ids: dict[int, dict[str, str]] = {broker: {} for broker in brokers}
    for topic in topics:
        for partition in topic.partitions:
            if partition.leader in leads:
                leads[partition.leader].setdefault(topic.name, []).append(partition.number)
            if topic.id is not None:
                for broker in partition.replicas:
                    if broker in ids:
                        ids[broker][topic.name] = topic.id
    dealt = _dealt(brokers, topics)
    return [
        Share(
            cluster=view.cluster_id,
            broker=node.id,
            address=_address(node),
            rack=node.rack,
            leads={topic: tuple(numbers) for topic, numbers in leads[node.id].items()},
            topics=dealt[node.id],
            topic_ids=ids[node.id],
        )
        for node in view.nodes
    ]


def nobody(cluster: str, problem: str) -> Share:
    """Return the share of a cluster that does not answer."""
    return Share(cluster=cluster, broker=NOBODY, problem=problem)


def _dealt(brokers: Sequence[int], topics: Sequence[Topic]) -> dict[int, tuple[str, ...]]:
    """Assign topics to brokers, the largest first, each to the broker with the fewest partitions so far."""
    hands: dict[int, list[str]] = {broker: [] for broker in brokers}
    counts = [(0, broker) for broker in brokers]
    heapq.heapify(counts)
    for topic in sorted(topics, key=lambda topic: (-len(topic.partitions), topic.name)):
        partitions, broker = counts[0]
        hands[broker].append(topic.name)
        heapq.heapreplace(counts, (partitions + len(topic.partitions), broker))
    return {broker: tuple(names) for broker, names in hands.items()}


def _address(node: Node) -> str:
    host = f"[{node.host}]" if ":" in node.host else node.host
    return f"{host}:{node.port}"
