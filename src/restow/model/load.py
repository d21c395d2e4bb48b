"""The load of partitions: two numbers per resource, for the leader and for each follower.

In columns, because there may be millions: the n-th number of every column belongs to the n-th partition.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from restow.model.ids import BrokerId, TopicPartition

BYTES_IN = "bytes_in"
BYTES_OUT = "bytes_out"
WEEK_HOURS = 168


@frozen
class Resource:
    """A limited resource of brokers.

    `capacity` says how much each broker has; brokers without an entry count as equal.
    """

    leading: NDArray[np.float64]
    following: NDArray[np.float64]
    capacity: Mapping[BrokerId, float] = field(default_factory=dict)
    hours: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By topic: multiples of the load in the 168 hours of the week, from Monday midnight UTC on.

    An hour that was never sampled is NaN. A topic without an entry has the same load at all hours.
    """
    reached: float | None = None
    """The most that one broker was seen to carry; it can do at least that."""


@frozen
class LoadModel:
    """Loads of a cluster's partitions by resource: `bytes_in` and `bytes_out` per second, and others."""

    cluster_id: str
    made_ms: int
    partitions: tuple[TopicPartition, ...]
    resources: Mapping[str, Resource]
