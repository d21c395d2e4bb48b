"""A group in numbers: members and partitions become indices before any algorithm looks at them.

Members are numbered in an order of Kafka's (see `in_line` and `by_id`), topics by name, and partitions
topic by topic, so that sorting numbers sorts the names:

    topic 0        topic 1     topic 2
    0 1 2 3 4 5    6 7 8       9 10 11 12     ← partition numbers
    starts = [0, 6, 9, 13]

Member counts are in the thousands and partitions may be a million, so whatever goes over partitions
is numpy's or one of the interpreter's own loops.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np

from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors.base import Assignment
    from restow.model import Member

NOBODY = -1

# Half the price of calling the class: no argument parsing, and map() stays inside the interpreter.
_make_partition = partial(tuple.__new__, TopicPartition)


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile.

    An answer of a million partitions is a million objects, all of which live on; walking them over
    and over while they are made takes longer than making them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def java_order(text: str) -> bytes:
    """A key that sorts as Java's String.compareTo does: by UTF-16 code units, not code points."""
    return text.encode("utf-16-be", "surrogatepass")


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """All partitions of a topic, in order."""
    return list(map(_make_partition, zip(repeat(topic), range(count), strict=False)))


@dataclass(frozen=True)
class Group:
    """The members and what they may read, numbered."""

    members: tuple[Member, ...]
    topics: tuple[str, ...]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    subscription_of: NDArray[np.int64]
    """For each member which of the distinct subscriptions it has."""
    subscriptions: NDArray[np.bool_]
    """Distinct subscriptions × topics."""

    @classmethod
    def of(
        cls,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        order: Callable[[Member], tuple[bool, bytes]],
    ) -> Group:
        """Number the members, and those of their topics that have partitions."""
        ordered = sorted(members, key=order)
        distinct: dict[tuple[str, ...], int] = {}
        subscription_of = [distinct.setdefault(tuple(m.topics), len(distinct)) for m in ordered]
        subscribed = {topic for topics in distinct for topic in topics}
        topics = sorted((t for t in subscribed if partitions.get(t, 0) > 0), key=java_order)
        number = {topic: i for i, topic in enumerate(topics)}
        subscriptions = np.zeros((len(distinct), len(topics)), dtype=np.bool_)
        for i, wanted in enumerate(distinct):
            subscriptions[i, [number[t] for t in wanted if t in number]] = True
        counts = np.array([partitions[t] for t in topics], dtype=np.int64)
        return cls(
            members=tuple(ordered),
            topics=tuple(topics),
            counts=counts,
            starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            subscription_of=np.array(subscription_of, dtype=np.int64),
            subscriptions=subscriptions,
        )

    @property
    def partition_count(self) -> int:
        """How many partitions there are to deal out."""
        return int(self.starts[-1])

    @cached_property
    def uniform(self) -> bool:
        """Whether every member may have every partition."""
        return bool(self.subscriptions.all())

    def subscribers(self, topic: int) -> NDArray[np.int64]:
        """The members that want this topic, in order."""
        return np.flatnonzero(self.subscriptions[self.subscription_of, topic])

    def partitions(self) -> list[TopicPartition]:
        """Every partition, in the order of their numbers."""
        everything: list[TopicPartition] = []
        for topic, count in zip(self.topics, self.counts.tolist(), strict=True):
            everything += map(_make_partition, zip(repeat(topic), range(count), strict=False))
        return everything

    def named(self, dealt: Sequence[list[TopicPartition]]) -> Assignment:
        """The answer: each member's id with its list."""
        return {member.id: mine for member, mine in zip(self.members, dealt, strict=True)}

    def assignment(self, owner: NDArray[np.int64]) -> Assignment:
        """The answer for an owner (or nobody) per partition, each member's list sorted."""
        with collector_paused():
            everything = np.fromiter(self.partitions(), dtype=object, count=self.partition_count)
            ends = np.cumsum(np.bincount(owner + 1, minlength=len(self.members) + 1)).tolist()
            # Sixteen bits where they suffice: numpy sorts those by radix, ten times faster.
            narrow = (owner + 1).astype(np.uint16) if len(self.members) < 2**16 - 1 else owner + 1
            ordered = everything[np.argsort(narrow, kind="stable")].tolist()
            return self.named([ordered[a:b] for a, b in pairwise(ends)])


def in_line(member: Member) -> tuple[bool, bytes]:
    """The order of range and roundrobin: static members by instance id, then the others by member id."""
    if member.instance_id is not None:
        return False, java_order(member.instance_id)
    return by_id(member)


def by_id(member: Member) -> tuple[bool, bytes]:
    """The order of the sticky ones."""
    return True, java_order(member.id)
