"""Rack-aware placement with exactly the answers of Kafka's candidate loop, but without running it.

Kafka arranges the brokers in a circle that alternates racks. For each partition it walks round that circle
from some broker on and skips candidates: those in a rack that already has a replica while another rack has
none, and those that already have a replica themselves. The result can be computed directly:

1. Until every rack has a replica, the walk takes the first broker it meets of each rack except that of
   the first replica. "The first broker met of each rack" depends only on where the walk begins, so
   one table serves all partitions (`first_of_each_rack`).
2. From there on it takes every broker it meets that is still free. The t-th free one is t places ahead,
   plus one for each taken broker in between (`_fill_up`).
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from restow.placement.rounds import in_rounds, rotated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.model import Broker, Rack
    from restow.placement.rounds import Angles, Ids, PlacementRequest


def place_rack_aware(brokers: Sequence[Broker], request: PlacementRequest) -> Ids:
    """Return replicas for every partition, from brokers that all have a rack, in any order.

    Goals: those of rack-unaware placement, and that a partition's replicas span as many racks as possible:
    with at least as many replicas as racks every rack has one, otherwise no rack has two.
    """
    circle = alternate_racks(brokers)
    names = in_kafka_order({broker.rack for broker in circle if broker.rack is not None})
    number = {rack: index for index, rack in enumerate(names)}
    ids = np.array([broker.id for broker in circle], dtype=np.int32)
    racks = np.array([number[broker.rack] for broker in circle if broker.rack is not None], dtype=np.int32)
    n, replication_factor = ids.size, request.replication_factor
    spread = min(replication_factor, len(names))
    met = first_of_each_rack(racks, spread)

    def place_rounds(start: int, turns: Angles) -> Ids:
        placed = np.empty((turns.size, n, replication_factor), dtype=np.int32)
        placed[:, :, 0] = np.roll(np.arange(n, dtype=np.int32), -start)
        _spread_over_racks(placed[:, :, :spread], met, racks, start + 1 + turns)
        if replication_factor > spread:
            _fill_up(placed.reshape(-1, replication_factor), spread, n, start + 1 + turns)
        return np.take(ids, placed)

    return in_rounds(request, n, len(names), place_rounds)


def alternate_racks(brokers: Iterable[Broker]) -> list[Broker]:
    """Return one broker from each rack in turn: racks in Kafka's order, brokers by id; skip empty racks."""
    by_rack: dict[Rack, list[Broker]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.id):
        if broker.rack is not None:
            by_rack.setdefault(broker.rack, []).append(broker)
    turns = zip_longest(*(by_rack[rack] for rack in in_kafka_order(by_rack)))
    return [broker for broker in chain.from_iterable(turns) if broker is not None]


def in_kafka_order(racks: Iterable[Rack]) -> list[Rack]:
    """Return racks sorted as Java sorts strings: by UTF-16 units, which differs beyond the basic plane."""
    return sorted(racks, key=lambda rack: rack.encode("utf-16-be", "surrogatepass"))


def first_of_each_rack(racks: Ids, depth: int) -> Ids:
    """For a walk that begins at each position, return the first position of each of `depth` racks.

    Row k holds the k-th such position for every start. Going backwards, a position puts itself in front of
    its successor's list, from which its own rack is removed. The first of two laps only computes the list at
    the end of the circle.
    """
    met_racks: list[int] = []
    met: list[int] = []
    rows: list[list[int]] = []
    circle = list(enumerate(racks.tolist()))
    for position, rack in reversed(circle + circle):
        if rack in met_racks:
            known = met_racks.index(rack)
            del met_racks[known], met[known]
        elif len(met) == depth:
            del met_racks[-1], met[-1]
        met_racks.insert(0, rack)
        met.insert(0, position)
        rows.append(met.copy())
    return np.array(rows[: racks.size - 1 : -1], dtype=np.int32).T


def _spread_over_racks(placed: Ids, met: Ids, racks: Ids, angles: Angles) -> None:
    """Fill the columns after the first with the walk's first broker of each rack except the first replica's.

    For replica k that is the table's row k - 1 or, once the walk has met the first replica's rack, row k.
    """
    own = racks[placed[0, :, 0]]
    passed = np.zeros(placed.shape[:2], dtype=np.bool_)
    for replica in range(1, placed.shape[2]):
        passed |= rotated(racks[met[replica - 1]], angles) == own
        before, after = rotated(met[replica - 1], angles), rotated(met[replica], angles)
        placed[:, :, replica] = np.where(passed, after, before)


def _fill_up(placed: Ids, spread: int, n: int, angles: Angles) -> None:
    """Fill the columns from `spread` on, once every rack has a replica, with the walk's next free brokers.

    Distances are counted from the walk's position, and the replicas after the first lie on it in order. So
    the taken distances are sorted except for the first replica's; a taken one at distance d with i taken ones
    before it is passed by the t-th free broker exactly if d - i ≤ t.
    """
    wanted = placed.shape[1] - spread
    begin = (angles[:, np.newaxis] + np.arange(n)).ravel() if spread == 1 else placed[:, spread - 1] + 1
    every = np.arange(len(placed))
    passed = np.zeros((len(placed), wanted + 1), dtype=np.int32)
    first = (placed[:, 0] - begin) % n
    free_before_first = first.copy()
    for replica in range(1, spread):
        distance = (placed[:, replica] - begin) % n
        beyond_first = distance > first
        free_before_first -= ~beyond_first
        passed[every, np.minimum(distance - (replica - 1) - beyond_first, wanted)] += 1
    passed[every, np.minimum(free_before_first, wanted)] += 1
    np.cumsum(passed, axis=1, out=passed)
    for ahead in range(wanted):
        placed[:, spread + ahead] = (begin + ahead + passed[:, ahead]) % n
