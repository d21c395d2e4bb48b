"""The throttles that the tool sets: for all moves, those in progress and those to be started.

As in the original, the lists of replicas are replaced for every topic that takes part, and both rates are set
on every broker that sends or receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.client import ConfigResource
from restow.execute.throttle.throttles import (
    DIR_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    REPLICAS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.client import PartitionReassignment
    from restow.model import BrokerId, TopicPartition

Changes = dict[ConfigResource, dict[str, str | None]]


class Ways(NamedTuple):
    """The brokers that may send a partition, and those that receive it."""

    sources: frozenset[BrokerId]
    destinations: frozenset[BrokerId]


def ways(
    proposed: Mapping[TopicPartition, Sequence[BrokerId]],
    present: Mapping[TopicPartition, Sequence[BrokerId]],
    moves: Mapping[TopicPartition, PartitionReassignment],
) -> dict[TopicPartition, Ways]:
    """Return all moves as they will be. A replica that is being added cannot send yet."""
    found = {
        partition: Ways(frozenset(move.replicas) - frozenset(move.adding), frozenset(move.adding))
        for partition, move in moves.items()
    }
    for partition, replicas in proposed.items():
        running = found.get(partition)
        sources = frozenset(present[partition]) if running is None else running.sources
        found[partition] = Ways(sources, frozenset(replicas) - sources)
    return found


def changes_for(routes: Mapping[TopicPartition, Ways], bytes_per_s: int) -> Changes:
    """Return lists of replicas by topic, and rates by broker."""
    changes: Changes = {}
    for topic in sorted({partition.topic for partition in routes}):
        mine = {each.partition: way for each, way in routes.items() if each.topic == topic}
        changes[ConfigResource("topic", topic)] = {
            LEADER_REPLICAS: _listed((number, way.sources) for number, way in mine.items()),
            FOLLOWER_REPLICAS: _listed((number, way.destinations) for number, way in mine.items()),
        }
    for broker in sorted(set().union(*(way.sources | way.destinations for way in routes.values()))):
        rate = str(bytes_per_s)
        changes[ConfigResource("broker", str(broker))] = {LEADER_RATE: rate, FOLLOWER_RATE: rate}
    return changes


def dir_changes_for(brokers: Iterable[BrokerId], bytes_per_s: int) -> Changes:
    return {
        ConfigResource("broker", str(broker)): {DIR_RATE: str(bytes_per_s)} for broker in sorted(set(brokers))
    }


def clear_brokers(brokers: Iterable[BrokerId]) -> Changes:
    return {ConfigResource("broker", str(broker)): dict.fromkeys(RATES) for broker in sorted(brokers)}


def clear_topics(topics: Iterable[str]) -> Changes:
    return {ConfigResource("topic", topic): dict.fromkeys(REPLICAS) for topic in sorted(topics)}


def _listed(pairs: Iterable[tuple[int, Iterable[BrokerId]]]) -> str:
    return ",".join(f"{number}:{broker}" for number, brokers in sorted(pairs) for broker in sorted(brokers))
