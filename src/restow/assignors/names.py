"""Make partition objects for callers as cheaply as the interpreter can.

Creating the answer's objects takes longer than finding the answer. A group is assigned again and again, and
partitions are values, so those of groups up to a moderate size are cached.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

# About twelve megabytes.
_KEPT_AT_MOST = 1 << 17

# Half the cost of calling the class: no argument parsing, and map() stays inside the interpreter.
_make = partial(tuple.__new__, TopicPartition)


class _Kept(dict[str, list[TopicPartition]]):
    """Cached partitions by topic; cleared when there are too many."""

    total = 0

    def keep(self, topic: str, partitions: list[TopicPartition]) -> None:
        self.total += len(partitions)
        if self.total > _KEPT_AT_MOST:
            self.clear()
            self.total = len(partitions)
        if self.total <= _KEPT_AT_MOST:
            self[topic] = partitions


_kept = _Kept()
_kept_numbers: list[int] = []


def _numbers(count: int) -> Iterable[int]:
    """Return the numbers below this; the same objects for all topics, which saves processor cache."""
    if count > _KEPT_AT_MOST:
        return range(count)
    _kept_numbers.extend(range(len(_kept_numbers), count))
    return _kept_numbers


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """Return all partitions of a topic, in order. The list may be shared: do not change it."""
    known = _kept.get(topic)
    if known is None or len(known) < count:
        known = list(map(_make, zip(repeat(topic, count), _numbers(count), strict=False)))
        _kept.keep(topic, known)
    return known if len(known) == count else known[:count]


def made(
    topics: Sequence[str], topic: NDArray[np.int64], partition: NDArray[np.int64]
) -> list[TopicPartition]:
    """Return the partitions with these topic indices and partition numbers, in this order."""
    names = map(topics.__getitem__, topic.tolist())
    return list(map(_make, zip(names, partition.tolist(), strict=True)))


def all_kept(topics: Sequence[str], counts: NDArray[np.int64]) -> list[TopicPartition] | None:
    """Return all partitions of these topics, in order; None if they are too many to keep."""
    return None if int(counts.sum()) > _KEPT_AT_MOST else all_of(topics, counts)


def all_of(topics: Sequence[str], counts: NDArray[np.int64]) -> list[TopicPartition]:
    """Return all partitions of these topics, in order."""
    everything: list[TopicPartition] = []
    for name, count in zip(topics, counts.tolist(), strict=True):
        everything += partitions_of(name, count)
    return everything
