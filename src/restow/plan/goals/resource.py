"""Any resource of the load model: bytes in, bytes out, processor time, or whatever somebody measures."""

from __future__ import annotations

from functools import partial

import numpy as np

from restow.model.load import BYTES_IN, BYTES_OUT
from restow.plan.goals.base import Columns, Facts, Goal


def _columns(name: str, facts: Facts) -> Columns | None:
    resource = facts.resources.get(name)
    if resource is None:
        return None
    known = [resource.capacity[broker] for broker in facts.brokers if broker in resource.capacity]
    typical = float(np.mean(known)) if known else 1.0
    strength = np.array([resource.capacity.get(broker, typical) for broker in facts.brokers])
    return Columns(leading=resource.leading, following=resource.following, strength=strength)


def resource_goal(name: str, unit: str = "") -> Goal:
    """The goal of spreading one resource."""
    return Goal(name=name, unit=unit, columns=partial(_columns, name))


BYTES_IN_GOAL = resource_goal(BYTES_IN, "B/s")
BYTES_OUT_GOAL = resource_goal(BYTES_OUT, "B/s")
