"""What producers send to leaders: unlike all bytes in, it can be moved without copying anything."""

from __future__ import annotations

import numpy as np

from restow.model.load import BYTES_IN
from restow.plan.goals.base import Columns, Facts, Goal


def _columns(facts: Facts) -> Columns | None:
    resource = facts.resources.get(BYTES_IN)
    if resource is None:
        return None
    return Columns(
        leading=resource.leading,
        following=np.zeros(len(facts.size_bytes)),
        strength=np.ones(len(facts.brokers)),
    )


LEADER_BYTES_IN = Goal(name="leader_bytes_in", unit="B/s", columns=_columns)
