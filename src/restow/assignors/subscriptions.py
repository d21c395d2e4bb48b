"""Which topics each member subscribes to, as a table.

Hundreds of members may each name hundreds of topics. So every name is looked up once, in few steps, and
members that were made together mostly share one subscription, which is read once. A group is assigned again
and again while most subscriptions stay, so their rows of the table are kept.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

# Of more topics than this times the longest subscription, most are not read by the group.
_SPARSE = 4
_NUMBER = np.dtype("<i4")
_SETS_OF_TOPICS_KEPT = 4
# Bytes of the rows of one set of topics, with the references of the subscriptions that they stand for.
_KEPT_AT_MOST = 1 << 22
_REFERENCE = 8


def subscription_table(
    subscriptions: Iterable[Collection[str]], partitions: Mapping[str, int]
) -> tuple[tuple[str, ...], NDArray[np.bool_], NDArray[np.int64]]:
    """Return the topics that are read and have partitions, a table of distinct subscriptions × these topics,
    and which of its rows each subscription is.
    """
    listed = list(subscriptions)
    seen = {id(row): row for row in listed}
    given = [tuple(row) for row in seen.values()]
    among: Iterable[str] = partitions
    if len(partitions) > _SPARSE * max(map(len, given), default=0):
        among = dict.fromkeys(chain.from_iterable(given))
    names = tuple([topic for topic in among if partitions.get(topic, 0) > 0])
    number: dict[bytes, int] = {}
    kinds = [number.setdefault(row, len(number)) for row in _rows_over(names).of(given)]
    wanted = np.frombuffer(b"".join(number), dtype=np.bool_).reshape(len(number), len(names))
    if len(given) == 1:
        row_of = np.zeros(len(listed), dtype=np.int64)
    else:
        by_id = dict(zip(seen, kinds, strict=True))
        row_of = np.array([by_id[id(row)] for row in listed], dtype=np.int64)
    read = wanted.any(axis=0)
    if read.all():
        return names, wanted, row_of
    return tuple([names[column] for column in np.flatnonzero(read).tolist()]), wanted[:, read], row_of


class _Rows:
    """Rows over one set of topics: for each topic a byte that says whether it is subscribed to."""

    def __init__(self, names: Sequence[str]) -> None:
        self._width = len(names)
        self._number = {topic: _packed(number) for number, topic in enumerate(names)}
        self._missing = _packed(self._width)
        self._kept: dict[tuple[str, ...], bytes] = {}
        self._kept_bytes = 0

    def of(self, subscriptions: Sequence[tuple[str, ...]]) -> list[bytes]:
        """Return the row of each subscription."""
        found = list(map(self._kept.get, subscriptions))
        fresh = [topics for topics, row in zip(subscriptions, found, strict=True) if row is None]
        made = self._made(fresh) if fresh else []
        for topics, row in zip(fresh, made, strict=True):
            self._keep(topics, row)
        following = iter(made)
        return [next(following) if row is None else row for row in found]

    def _made(self, subscriptions: Sequence[tuple[str, ...]]) -> list[bytes]:
        packed = list(map(self._numbers, subscriptions))
        width = self._width + 1  # the last column is for topics without partitions
        cells = np.frombuffer(b"".join(packed), dtype=_NUMBER).astype(np.int64)
        lengths = [len(numbers) // _NUMBER.itemsize for numbers in packed]
        cells += np.repeat(np.arange(len(packed)) * width, lengths)
        table = np.zeros((len(packed), width), dtype=np.bool_)
        table.ravel()[cells] = True
        data, step = table[:, :-1].tobytes(), self._width
        return [data[at * step : (at + 1) * step] for at in range(len(packed))]

    def _numbers(self, topics: tuple[str, ...]) -> bytes:
        """Return the numbers of some topics, one after another; those without partitions share one."""
        try:
            if len(topics) > 1:
                return b"".join(itemgetter(*topics)(self._number))
        except KeyError:
            pass
        return b"".join([self._number.get(topic, self._missing) for topic in topics])

    def _keep(self, topics: tuple[str, ...], row: bytes) -> None:
        size = len(row) + _REFERENCE * len(topics)
        if self._kept_bytes + size > _KEPT_AT_MOST:
            self._kept.clear()
            self._kept_bytes = 0
        if size <= _KEPT_AT_MOST:
            self._kept[topics] = row
            self._kept_bytes += size


def _packed(number: int) -> bytes:
    return number.to_bytes(_NUMBER.itemsize, "little")


@lru_cache(maxsize=_SETS_OF_TOPICS_KEPT)
def _rows_over(names: tuple[str, ...]) -> _Rows:
    return _Rows(names)
