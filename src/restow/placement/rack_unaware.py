"""Rack-unaware placement: Kafka's round robin with a shift."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.placement.rounds import in_rounds, rotated

if TYPE_CHECKING:
    from restow.placement.rounds import Angles, Ids, PlacementRequest


def place_rack_unaware(ids: Ids, request: PlacementRequest) -> Ids:
    """Return replicas for every partition, from broker ids in the caller's order.

    Goals: every broker leads as many partitions as any other (within one), and the followers of one broker's
    partitions are spread over all the others, so that its failure does not load a single one.

    First replicas go round the list. The others follow the first at a distance that is the same for a whole
    round and grows by one with the next, modulo the n - 1 brokers that remain.
    """
    others = max(1, ids.size - 1)

    def place_rounds(start: int, turns: Angles) -> Ids:
        placed = np.empty((turns.size, ids.size, request.replication_factor), dtype=np.int32)
        placed[:, :, 0] = np.roll(ids, -start)
        for replica in range(1, request.replication_factor):
            placed[:, :, replica] = rotated(ids, start + 1 + (turns + replica - 1) % others)
        return placed

    return in_rounds(request, ids.size, 1, place_rounds)
