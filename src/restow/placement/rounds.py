"""Place partitions a round at a time instead of one by one.

A round is one partition per broker: partitions k·n to k·n + n - 1 of n brokers. Within a round the replica
shift is constant and the first replica moves on by one broker per partition. So a round's first replicas are
the broker list rotated, and so are its second ones by another angle, and so on: a column of a round is a copy
of a slice. After a fixed number of rounds the whole pattern repeats.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Ids: TypeAlias = "npt.NDArray[np.int32]"
Angles: TypeAlias = "npt.NDArray[np.intp]"

# Returns each round's replicas for the angle of the first replicas and the turns: (rounds, brokers, factor).
PlaceRounds: TypeAlias = "Callable[[int, Angles], Ids]"

# A shorter pattern is first repeated up to this length: few large copies are faster than many small ones.
REPEAT_ROWS = 4096


@frozen
class PlacementRequest:
    """What to place, already checked: the counts fit each other and nothing is random."""

    partitions: int
    replication_factor: int
    start: int
    shift: int
    first_partition: int


def in_rounds(request: PlacementRequest, brokers: int, stride: int, place_rounds: PlaceRounds) -> Ids:
    """Place all partitions, whole rounds at a time; the turn grows by `stride` from round to round.

    A turn is how far beyond its first replica a partition's search for the second begins, modulo the other
    brokers. Start and shift are Python integers until they are reduced, so none overflows.
    """
    others = max(1, brokers - 1)
    rows_until_repeat = brokers * (others // gcd(stride, others))
    rows = min(request.partitions, rows_until_repeat * -(-REPEAT_ROWS // rows_until_repeat))
    before = request.first_partition % brokers
    rounds = -(-(before + rows) // brokers)
    # The shift grows at each multiple of n above 0, the first partition's own id included.
    met = request.first_partition // brokers - max(0, request.first_partition - 1) // brokers
    turns = ((request.shift + met) % others + np.arange(rounds)) % others * stride % others
    placed = place_rounds(request.start % brokers, turns).reshape(
        rounds * brokers, request.replication_factor
    )
    table = placed[before : before + rows]
    return (
        table
        if rows == request.partitions
        else np.resize(table, (request.partitions, request.replication_factor))
    )


def rotated(values: Ids, angles: Angles) -> Ids:
    """Return one row per angle: the values from there on, around to the start."""
    twice = np.concatenate((values, values))
    rows: Ids = sliding_window_view(twice, values.size)[angles % values.size]
    return rows
