"""A group as numbers: members and partitions become indices before any algorithm runs.

Members are numbered in an order of Kafka's (see `in_line` and `by_id`), topics by name, and partitions topic
by topic, so that sorting numbers sorts the names:

    topic 0        topic 1     topic 2
    0 1 2 3 4 5    6 7 8       9 10 11 12     ← partition numbers
    starts = [0, 6, 9, 13]

There may be thousands of members and a million partitions, so loops over partitions are numpy's or run inside
the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.names import named, partitions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors.base import Assignment
    from restow.model import Member, TopicPartition

NOBODY = -1


def java_order(text: str) -> bytes:
    """Return a key that sorts like Java's String.compareTo: by UTF-16 code units, not code points."""
    return text.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True)
class NumberedGroup:
    """The members and their topics, numbered."""

    members: tuple[Member, ...]
    topics: tuple[str, ...]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    subscription_of: NDArray[np.int64]
    """Each member's distinct subscription."""
    subscriptions: NDArray[np.bool_]
    """Distinct subscriptions × topics."""

    @classmethod
    def of(
        cls,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        order: Callable[[Member], tuple[bool, bytes]],
    ) -> NumberedGroup:
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
        """The number of partitions to assign."""
        return int(self.starts[-1])

    @cached_property
    def uniform(self) -> bool:
        """Whether every member may have every partition."""
        return bool(self.subscriptions.all())

    @cached_property
    def subscribers(self) -> list[list[int]]:
        """By topic: its subscribers in order; topics with the same subscribers share a list."""
        columns, which = distinct_columns(self.subscriptions)
        lists = [np.flatnonzero(column).tolist() for column in columns[self.subscription_of].T]
        return [lists[kind] for kind in which.tolist()]

    def around(self) -> list[list[TopicPartition]]:
        """Return all partitions in one row, dealt around the members."""
        row: list[TopicPartition] = []
        for topic, count in zip(self.topics, self.counts.tolist(), strict=True):
            row += partitions_of(topic, count)
        return [row[turn :: len(self.members)] for turn in range(len(self.members))]

    def lists(self, owner: NDArray[np.int64], of: NDArray[np.bool_]) -> list[list[TopicPartition]]:
        """Return the sorted partitions of each chosen member, given the owner of each partition."""
        chosen = np.append(of, False)  # -1, no owner, is the last index
        mine = np.flatnonzero(chosen[owner])
        # Sixteen bits where they suffice: numpy sorts those by radix, ten times faster.
        narrow = owner[mine].astype(np.uint16) if len(of) < 2**16 else owner[mine]
        mine = mine[np.argsort(narrow, kind="stable")]
        counts = np.bincount(owner[mine], minlength=len(of))[of]
        topic = np.searchsorted(self.starts, mine, side="right") - 1
        row = named(self.topics, self.counts, topic, mine - self.starts[topic])
        return [row[start:end] for start, end in pairwise((0, *np.cumsum(counts).tolist()))]

    def assignment(self, dealt: Sequence[list[TopicPartition]]) -> Assignment:
        """Return the answer: each member's id with its list."""
        return {member.id: mine for member, mine in zip(self.members, dealt, strict=True)}


def distinct_columns(table: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the distinct columns of a table, and the index of each column among them."""
    packed = np.packbits(table, axis=0).T
    number: dict[bytes, int] = {}
    which = [number.setdefault(column.tobytes(), len(number)) for column in packed]
    first = {kind: column for column, kind in reversed(list(enumerate(which)))}
    return table[:, [first[kind] for kind in range(len(number))]], np.array(which, dtype=np.int64)


def in_line(member: Member) -> tuple[bool, bytes]:
    """Return the sort key of range and roundrobin: static members by instance id, then by member id."""
    if member.instance_id is not None:
        return False, java_order(member.instance_id)
    return by_id(member)


def by_id(member: Member) -> tuple[bool, bytes]:
    """Return the sort key of the sticky assignors."""
    return True, java_order(member.id)
