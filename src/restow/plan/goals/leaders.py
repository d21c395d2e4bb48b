"""The number of leaders: clients talk to them."""

from __future__ import annotations

import numpy as np

from restow.plan.goals.base import Columns, Facts, Goal


def _columns(facts: Facts) -> Columns:
    partitions = len(facts.size_bytes)
    return Columns(
        leading=np.ones(partitions), following=np.zeros(partitions), strength=np.ones(len(facts.brokers))
    )


LEADERS = Goal(name="leaders", unit="", columns=_columns, counted=True)
