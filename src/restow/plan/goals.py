"""What plans can aim at: something that brokers should have equally much of, each by its strength."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from restow.model.load import BYTES_IN, BYTES_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from restow.model.load import Resource

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

DEFAULT_BAND = 0.09


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What goals are made of: sizes and loads of all partitions, and how strong brokers are."""

    size_bytes: Floats
    """Of one replica of each partition."""
    disk_bytes: Floats
    """Of each broker's file systems, all equal where they are unknown."""
    brokers: tuple[int, ...]
    resources: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A goal in numbers: what each partition's leader and followers carry, and each broker's strength."""

    leading: Floats
    following: Floats
    strength: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`columns` makes the numbers, or None where nothing is known of the matter."""

    name: str
    unit: str
    columns: Callable[[Facts], Columns | None]
    band: float = DEFAULT_BAND
    """How far from its share a broker may be, by default, as a share of it."""
    counted: bool = False
    """Whether it comes in whole numbers, so that no band can be narrower than from one to the next."""


def _disk(facts: Facts) -> Columns:
    """Bytes on disk, by the size of a broker's file systems. Always first: it is what moving costs."""
    return Columns(leading=facts.size_bytes, following=facts.size_bytes, strength=facts.disk_bytes)


DISK = Goal(name="disk", unit="B", columns=_disk)


def _resource(name: str, facts: Facts) -> Columns | None:
    """Any resource of the load model: bytes in, bytes out, processor time, or whatever somebody measures."""
    resource = facts.resources.get(name)
    if resource is None:
        return None
    known = [resource.capacity[broker] for broker in facts.brokers if broker in resource.capacity]
    typical = float(np.mean(known)) if known else 1.0
    strength = np.array([resource.capacity.get(broker, typical) for broker in facts.brokers])
    return Columns(leading=resource.leading, following=resource.following, strength=strength)


def resource_goal(name: str, unit: str = "") -> Goal:
    """The goal of spreading one resource."""
    return Goal(name=name, unit=unit, columns=partial(_resource, name))


BYTES_IN_GOAL = resource_goal(BYTES_IN, "B/s")
BYTES_OUT_GOAL = resource_goal(BYTES_OUT, "B/s")


def _leader_bytes_in(facts: Facts) -> Columns | None:
    """What producers send to leaders: unlike all bytes in, it can be moved without copying anything."""
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
    """The number of leaders: clients talk to them."""
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
    """Return, of so many in each topic, the most that one of so many brokers may have.

    A broker may have its share of a topic's replicas, widened by the band and rounded up, and no more.
    """
    share = count / max(brokers, 1)
    return np.maximum(np.ceil(share - 1e-9), np.floor(share * (1 + band) + 1e-9)).astype(np.int64)


GOALS = (DISK, BYTES_IN_GOAL, BYTES_OUT_GOAL, REPLICAS, LEADERS, LEADER_BYTES_IN)
