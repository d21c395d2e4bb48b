"""Partitions of a member as numbers, which become objects only when somebody looks at them.

A group of a million partitions has an answer of a million objects, and making them takes far longer than
finding the answer. Most callers need only a few of them, or none: a broker keeps the members that did not
change, a comparison counts. So assignors answer with rows. A row behaves like the list that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from restow.assignors.names import all_kept, all_of, made
from restow.model import TopicPartition

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Rows of this share of a group are made one by one.
_ROWS_ALONE = 8


class Layout:
    """The numbers of partitions: topic after topic, in the order of their names."""

    __slots__ = ("_everything", "_made", "counts", "starts", "topics")

    def __init__(self, topics: tuple[str, ...], counts: NDArray[np.int64]) -> None:
        """Number the partitions; `starts` has each topic's first number, and at the end the next one."""
        self.topics = topics
        self.counts = counts
        self.starts: NDArray[np.int64] = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._made = 0
        self._everything: list[TopicPartition] | None = None

    def agrees_with(self, other: Layout) -> bool:
        """Return whether both give every partition the same number."""
        return self is other or (
            self.topics == other.topics and bool(np.array_equal(self.counts, other.counts))
        )

    def places(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the topic's index, and the number within the topic, of each of these partitions."""
        topic = np.searchsorted(self.starts, numbers, side="right") - 1
        return topic, numbers - self.starts[topic]

    def listed(self, numbers: range | NDArray[np.int64]) -> list[TopicPartition]:
        """Return the partitions with these numbers as objects.

        The first few rows are made one by one. Who asks for more will ask for all, and gets kept ones.
        """
        self._made += len(numbers)
        total = int(self.starts[-1])
        if self._everything is None and total < _ROWS_ALONE * self._made:
            self._everything = all_kept(self.topics, self.counts)
        if self._everything is None:
            at = (
                np.arange(numbers.start, numbers.stop, numbers.step)
                if isinstance(numbers, range)
                else numbers
            )
            topic, partition = self.places(at)
            return made(self.topics, topic, partition)
        if isinstance(numbers, range):
            return self._everything[numbers.start : numbers.stop : numbers.step]
        return list(map(self._everything.__getitem__, numbers.tolist()))


class PartitionRow(Sequence[TopicPartition]):
    """Partitions in ascending order: a sequence that equals a list of the same partitions.

    It is made of a range or an array of numbers, or of a function that returns those of some member (all rows
    of an answer share it). Pickled or copied, it is a list.
    """

    __slots__ = ("_listed", "_member", "_size", "given", "layout")

    def __init__(
        self,
        layout: Layout,
        size: int,
        given: range | NDArray[np.int64] | Callable[[int], NDArray[np.int64]],
        member: int = 0,
    ) -> None:
        self.layout = layout
        self._size = size
        self.given = given
        self._member = member
        self._listed: list[TopicPartition] | None = None

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the partitions, which rise."""
        given = self.given
        if isinstance(given, np.ndarray):
            return given
        if isinstance(given, range):
            return np.arange(given.start, given.stop, given.step)
        self.given = numbers = given(self._member)
        return numbers

    def _list(self) -> list[TopicPartition]:
        if self._listed is None:
            self._listed = self.layout.listed(self.given if isinstance(self.given, range) else self.numbers)
        return self._listed

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._list())

    @overload
    def __getitem__(self, index: int) -> TopicPartition: ...
    @overload
    def __getitem__(self, index: slice) -> list[TopicPartition]: ...
    def __getitem__(self, index: int | slice) -> TopicPartition | list[TopicPartition]:
        return self._list()[index]

    def __contains__(self, partition: object) -> bool:
        return partition in self._list()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionRow):
            if self.layout.agrees_with(other.layout):
                return len(self) == len(other) and bool(np.array_equal(self.numbers, other.numbers))
            return self._list() == other._list()
        if isinstance(other, list | tuple):
            return len(self) == len(other) and self._list() == list(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._list()))

    def __add__(self, more: Sequence[TopicPartition]) -> list[TopicPartition]:
        return [*self, *more]

    def __radd__(self, more: Sequence[TopicPartition]) -> list[TopicPartition]:
        return [*more, *self]

    def __repr__(self) -> str:
        return repr(self._list())

    def __reduce__(self) -> tuple[type[list[TopicPartition]], tuple[tuple[TopicPartition, ...]]]:
        return list, (tuple(self._list()),)


def spread(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranges of numbers one after another."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def numbers_of(rows: Sequence[PartitionRow]) -> NDArray[np.int64]:
    """Return the numbers of all these rows, one after another."""
    ranges = [row.given for row in rows if isinstance(row.given, range) and row.given.step == 1]
    if len(ranges) == len(rows):
        starts = np.array([each.start for each in ranges], dtype=np.int64)
        return spread(starts, np.array([len(each) for each in ranges], dtype=np.int64))
    return np.concatenate([row.numbers for row in rows])


def in_lists(answer: Mapping[str, Sequence[TopicPartition]]) -> dict[str, list[TopicPartition]]:
    """Return an answer with its rows as lists, made together: faster than each by itself."""
    rows = [mine for mine in answer.values() if isinstance(mine, PartitionRow)]
    layout = rows[0].layout if rows else None
    if layout is None or any(row.layout is not layout for row in rows) or 2 * len(rows) < len(answer):
        return {member: mine if type(mine) is list else list(mine) for member, mine in answer.items()}
    everything = all_of(layout.topics, layout.counts)
    lists = {}
    for member, mine in answer.items():
        if not isinstance(mine, PartitionRow):
            lists[member] = mine if type(mine) is list else list(mine)
        elif isinstance(mine.given, range):
            lists[member] = everything[mine.given.start : mine.given.stop : mine.given.step]
        else:
            lists[member] = list(map(everything.__getitem__, mine.numbers.tolist()))
    return lists
