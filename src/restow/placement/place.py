"""Place the partitions of a topic: check, draw the start, choose the algorithm."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from restow.errors import InvalidBrokers, InvalidPartitions, InvalidReplicationFactor
from restow.placement.modes import RackMode, looks_at_racks
from restow.placement.rack_aware import place_rack_aware
from restow.placement.rack_unaware import place_rack_unaware
from restow.placement.rounds import PlacementRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.model import Broker
    from restow.placement.rounds import Ids

LARGEST_ID = 2**31 - 1
"""Kafka counts brokers and partitions in 32 bits."""


def place(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int | None = None,
    start_partition: int = 0,
    rng: np.random.Generator | None = None,
    rack_mode: RackMode | str = RackMode.ENFORCED,
) -> Ids:
    """Return the replicas as Kafka places them: a row per partition from `start_partition` on, leader first.

    With a `start_index` the answer is exactly Kafka's, the same every time. Without one (None, or negative as
    in Kafka) start and shift are drawn from `rng`, or at random if there is none. A negative
    `start_partition` counts as 0. The order of the brokers matters only without racks.
    """
    mode = RackMode.of(rack_mode)
    brokers = tuple(brokers)
    _check_counts(brokers, partitions, replication_factor, start_partition)
    by_rack = looks_at_racks(brokers, mode)
    if start_index is None or start_index < 0:
        start, shift = _draw(len(brokers), rng)
    else:
        start = shift = int(start_index)
    request = PlacementRequest(
        partitions=int(partitions),
        replication_factor=int(replication_factor),
        start=start,
        shift=shift,
        first_partition=max(0, int(start_partition)),
    )
    if by_rack:
        return place_rack_aware(brokers, request)
    return place_rack_unaware(np.array([broker.id for broker in brokers], dtype=np.int32), request)


def check_brokers(brokers: Sequence[Broker]) -> None:
    """Refuse brokers that cannot be a cluster."""
    if not brokers:
        raise InvalidBrokers("There are no brokers to place replicas on; name at least one.")
    for broker in brokers:
        if not 0 <= broker.id <= LARGEST_ID:
            raise InvalidBrokers(f"Broker id {broker.id} cannot be; Kafka's go from 0 to {LARGEST_ID}.")
    if len({broker.id for broker in brokers}) < len(brokers):
        counts = Counter(broker.id for broker in brokers)
        twice = sorted(broker for broker, count in counts.items() if count > 1)
        raise InvalidBrokers(f"Brokers listed more than once: {', '.join(map(str, twice))}. List each once.")


def _check_counts(
    brokers: Sequence[Broker], partitions: int, replication_factor: int, start_partition: int
) -> None:
    """Refuse invalid counts; if several are wrong, raise the error that Kafka raises first."""
    if partitions <= 0:
        raise InvalidPartitions(f"The number of partitions must be larger than 0, not {partitions}.")
    if max(0, start_partition) + partitions - 1 > LARGEST_ID:
        raise InvalidPartitions(
            f"{partitions} partitions from id {max(0, start_partition)} on would pass {LARGEST_ID}, "
            "the largest partition id Kafka has; ask for fewer."
        )
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"The replication factor must be larger than 0, not {replication_factor}."
        )
    check_brokers(brokers)
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"Replication factor {replication_factor} is larger than the number of brokers, {len(brokers)}; "
            "lower the factor or add brokers."
        )


def _draw(brokers: int, rng: np.random.Generator | None) -> tuple[int, int]:
    """Draw start and shift, each the position of any broker, independently."""
    rng = rng or np.random.default_rng()
    return int(rng.integers(brokers)), int(rng.integers(brokers))
