"""The judge's look at each topic by itself: is it spread over the brokers?"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, Move, Snapshot
    from restow.plan.request.request import PlanRequest

_BAND = 0.09


def crowded(
    snapshot: Snapshot, moves: Mapping[TopicPartition, Move], request: PlanRequest
) -> Mapping[str, tuple[int, int]]:
    """Replicas and leaders of topics beyond a broker's share, widened by the band, before and after."""
    there = [
        broker.id
        for broker in snapshot.brokers
        if not broker.log_dirs or any(not each.failed for each in broker.log_dirs)
    ]
    able = set(there) - request.barred
    found = {"topic_replicas": [0, 0], "topic_leaders": [0, 0]}
    for topic in snapshot.topics:
        sides: list[list[tuple[BrokerId, ...]]] = [[], []]
        for partition in topic.partitions:
            move = moves.get(TopicPartition(topic.name, partition.number))
            sides[0].append(partition.replicas)
            sides[1].append(partition.replicas if move is None else move.after)
        total = sum(map(len, sides[1])), len(sides[1])
        for side, lists in enumerate(sides):
            replicas = Counter(broker for each in lists for broker in each)
            leaders = Counter(next((one for one in each if one in there), each[0]) for each in lists)
            for goal, counts, many in zip(found, (replicas, leaders), total, strict=True):
                most = _most(many, len(able), request.bands.get(goal, _BAND))
                found[goal][side] += sum(max(counts[broker] - most, 0) for broker in able)
    return {goal: (before, after) for goal, (before, after) in found.items()}


def _most(many: int, brokers: int, band: float | None) -> int:
    if band is None or not brokers:
        return many
    share = many / brokers
    return max(math.ceil(share - 1e-9), math.floor(share * (1 + band) + 1e-9))
