"""Each topic by itself: its replicas, and its leaders, on as many brokers as there are.

A broker may have its share of a topic's replicas, widened by the band and rounded up, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.goals.base import DEFAULT_BAND

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOPIC_REPLICAS = "topic_replicas"
TOPIC_LEADERS = "topic_leaders"


def most_per_broker(count: NDArray[np.int64], brokers: int, band: float = DEFAULT_BAND) -> NDArray[np.int64]:
    """Of so many in each topic, the most that one of so many brokers may have."""
    share = count / max(brokers, 1)
    return np.maximum(np.ceil(share - 1e-9), np.floor(share * (1 + band) + 1e-9)).astype(np.int64)
