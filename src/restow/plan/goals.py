"""The goals of plans: quantities that brokers should share in proportion to their capacity."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.model.load import BYTES_IN, BYTES_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.model.load import Resource
    from restow.plan.search.problem import Floats, Ints

DEFAULT_BAND = 0.09


@frozen
class Facts:
    """The input of goals: sizes and loads of all partitions, and the capacities of brokers."""

    size_bytes: Floats
    """Bytes of one replica of each partition."""
    disk_bytes: Floats
    """Bytes of each broker's file systems; all equal where they are unknown."""
    brokers: tuple[int, ...]
    resources: Mapping[str, Resource] = field(default_factory=dict)


@frozen
class Columns:
    """A goal as arrays: the load of each partition's leader and followers, and each broker's capacity."""

    leading: Floats
    following: Floats
    strength: Floats


@frozen
class Goal:
    """A goal; `columns` returns its arrays, or None if its data is missing."""

    name: str
    unit: str
    columns: Callable[[Facts], Columns | None]
    band: float = DEFAULT_BAND
    """How far a broker may be from its share by default, as a fraction of it."""
    counted: bool = False
    """Whether it counts whole things, so that no band can be narrower than one of them."""


def _disk(facts: Facts) -> Columns:
    """Bytes on disk, relative to a broker's file systems. Always first: it is the cost of moving."""
    return Columns(leading=facts.size_bytes, following=facts.size_bytes, strength=facts.disk_bytes)


DISK = Goal(name="disk", unit="B", columns=_disk)


def _resource(name: str, facts: Facts) -> Columns | None:
    """Any resource of the load model: bytes in, bytes out, CPU time, or another measurement."""
    resource = facts.resources.get(name)
    if resource is None:
        return None
    known = [resource.capacity[broker] for broker in facts.brokers if broker in resource.capacity]
    typical = float(np.mean(known)) if known else 1.0
    strength = np.array([resource.capacity.get(broker, typical) for broker in facts.brokers])
    return Columns(leading=resource.leading, following=resource.following, strength=strength)


def resource_goal(name: str, unit: str = "") -> Goal:
    """Return the goal of balancing one resource."""
    return Goal(name=name, unit=unit, columns=partial(_resource, name))


BYTES_IN_GOAL = resource_goal(BYTES_IN, "B/s")
BYTES_OUT_GOAL = resource_goal(BYTES_OUT, "B/s")


def _leader_bytes_in(facts: Facts) -> Columns | None:
    """Bytes that producers send to leaders: unlike all bytes in, they move without copying."""
    resource = facts.resources.get(BYTES_IN)
    if resource is None:
        return None
    return Columns(
        leading=resource.leading,
        following=np.zeros(len(facts.size_bytes)),
        strength=np.ones(len(facts.brokers)),
    )


LEADER_BYTES_IN = Goal(name="leader_bytes_in", unit="B/s", columns=_leader_bytes_in)


def _leaders(facts: Facts) -> Columns:
    """The number of leaders: clients connect to them."""
    partitions = len(facts.size_bytes)
    return Columns(
        leading=np.ones(partitions), following=np.zeros(partitions), strength=np.ones(len(facts.brokers))
    )


LEADERS = Goal(name="leaders", unit="", columns=_leaders, counted=True)


def _replicas(facts: Facts) -> Columns:
    """The number of replicas: each costs files, memory and a share of every request."""
    one = np.ones(len(facts.size_bytes))
    return Columns(leading=one, following=one, strength=np.ones(len(facts.brokers)))


REPLICAS = Goal(name="replicas", unit="", columns=_replicas, counted=True)


TOPIC_REPLICAS = "topic_replicas"
TOPIC_LEADERS = "topic_leaders"


def most_per_broker(count: Ints, brokers: int, band: float = DEFAULT_BAND) -> Ints:
    """Return the most replicas of each topic per broker: its share plus the band, rounded up."""
    share = count / max(brokers, 1)
    return np.maximum(np.ceil(share - 1e-9), np.floor(share * (1 + band) + 1e-9)).astype(np.int64)


GOALS = (DISK, BYTES_IN_GOAL, BYTES_OUT_GOAL, REPLICAS, LEADERS, LEADER_BYTES_IN)
