"""The throttles that the tool sets: for all moves, those in progress and those to be started.

As in the original, the lists of replicas are replaced for every topic that takes part, and both rates are set
on every broker that sends or receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.client import ConfigResource
from restow.execute.throttle.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS, REPLICATION_RATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

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
    brokers = {broker for way in routes.values() for broker in (*way.sources, *way.destinations)}
    return changes | on_each("broker", brokers, dict.fromkeys(REPLICATION_RATES, str(bytes_per_s)))


def on_each(
    of: str, names: AbstractSet[BrokerId] | AbstractSet[str], values: Mapping[str, str | None]
) -> Changes:
    """Return the same values for each of these brokers or topics."""
    return {ConfigResource(of, str(name)): dict(values) for name in sorted(names)}


def _listed(pairs: Iterable[tuple[int, Iterable[BrokerId]]]) -> str:
    return ",".join(f"{number}:{broker}" for number, brokers in sorted(pairs) for broker in sorted(brokers))
