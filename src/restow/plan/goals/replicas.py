"""The number of replicas: each costs files, memory and a share of every request."""

from __future__ import annotations

import numpy as np

from restow.plan.goals.base import Columns, Facts, Goal


def _columns(facts: Facts) -> Columns:
    one = np.ones(len(facts.size_bytes))
    return Columns(leading=one, following=one, strength=np.ones(len(facts.brokers)))


REPLICAS = Goal(name="replicas", unit="", columns=_columns, counted=True)
