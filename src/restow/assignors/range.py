"""Kafka's range assignor, with KIP-881's rack matching.

Per topic, its subscribers are in order and each takes the next range of partitions; if they do not divide
evenly, the first few members take one more. So topics with the same members and partition count are
co-partitioned: partition 3 of each goes to one member.

Racks change which partitions a member takes, and which members take an extra one, but not how many. A topic
*calls for* matching if some member is in a rack of its replicas and not every partition is in all of those
racks. If one topic calls for it, then before the plain ranges

- topics with the same members and partition count are matched together: for each partition number the
  first member that is in a replica's rack in all of them, and has room, takes it in all of them;
- a single topic that calls for it: each member in order takes what matches, as far as it has room.

A member without a rack matches everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.base import NumberedAssignor
from restow.assignors.names import partitions_of
from restow.assignors.rows import PartitionRow, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from restow.assignors.base import Dealt, PartitionRacks
    from restow.assignors.group import NumberedGroup
    from restow.model import Rack, TopicPartition


class Range(NumberedAssignor):
    """Consecutive ranges of each topic."""

    name = "range"
    in_line = True

    def share_out(self, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Dealt:
        if partition_racks is not None and any(member.rack for member in group.members):
            tables = _tables(group, partition_racks)
            if any(table.calls_for_matching for table in tables):
                return group.assignment(_matched(group, tables))
        return group.assignment(_plain(group))


def _plain(group: NumberedGroup) -> list[PartitionRow]:
    """Return each member's ranges, which are computed when somebody looks at them."""
    ranges = _SharedRanges(group) if group.uniform else _OwnRanges(group)
    sizes = ranges.sizes()
    return list(map(PartitionRow, repeat(group.layout), sizes, repeat(ranges.of), range(len(sizes))))


class _OwnRanges:
    """The ranges of members with different topics: each is known from its turn among the subscribers."""

    def __init__(self, group: NumberedGroup) -> None:
        self._wanting = group.subscriptions[group.subscription_of]
        self._turn = np.cumsum(self._wanting, axis=0, dtype=np.int32) - 1
        self._starts = group.starts[:-1]
        self._each, self._extras = np.divmod(group.counts, self._turn[-1] + 1)

    def sizes(self) -> list[int]:
        """Return each member's number of partitions."""
        with_one_more = self._wanting & (self._turn < self._extras.astype(np.int32))
        whole = (self._wanting.astype(np.float64) @ self._each).astype(np.int64)
        sizes: list[int] = (whole + np.count_nonzero(with_one_more, axis=1)).tolist()
        return sizes

    def of(self, member: int) -> NDArray[np.int64]:
        """Return the numbers of one member's partitions."""
        mine = np.flatnonzero(self._wanting[member])
        turn, each, extras = self._turn[member, mine], self._each[mine], self._extras[mine]
        starts = self._starts[mine] + turn * each + np.minimum(turn, extras)
        return spread(starts, each + (turn < extras))


class _SharedRanges:
    """The ranges of members that all subscribe to all topics: each is known from the member's turn."""

    def __init__(self, group: NumberedGroup) -> None:
        self._starts = group.starts[:-1]
        self._members = len(group.members)
        self._each, self._extras = np.divmod(group.counts, max(self._members, 1))

    def sizes(self) -> list[int]:
        """Return each member's number of partitions."""
        turns = np.arange(self._members)
        with_one_more = len(self._extras) - np.searchsorted(np.sort(self._extras), turns, side="right")
        sizes: list[int] = (int(self._each.sum()) + with_one_more).tolist()
        return sizes

    def of(self, turn: int) -> NDArray[np.int64]:
        """Return the numbers of one member's partitions."""
        starts = self._starts + turn * self._each + np.minimum(turn, self._extras)
        return spread(starts, self._each + (turn < self._extras))


@dataclass(slots=True)
class _Table:
    """One topic during assignment: its subscribers, and how many each may still take."""

    members: tuple[int, ...]
    racks: tuple[frozenset[Rack], ...]
    calls_for_matching: bool
    each: int
    extras: int
    taken: dict[int, list[int]] = field(default_factory=dict)

    def room(self, member: int) -> int:
        return max(0, self.each + (self.extras > 0) - len(self.taken.get(member, ())))

    def take(self, member: int, partitions: list[int]) -> None:
        mine = self.taken.setdefault(member, [])
        mine += partitions
        if partitions and len(mine) > self.each:
            self.extras -= 1


def _tables(group: NumberedGroup, partition_racks: PartitionRacks) -> list[_Table]:
    tables = []
    for number, (topic, count) in enumerate(zip(group.topics, group.counts.tolist(), strict=True)):
        members = tuple(group.subscribers[number])
        racks = tuple(frozenset(r for r in of if r is not None) for of in partition_racks.get(topic, ()))
        racks = racks or (frozenset(),) * count
        all_racks = frozenset().union(*racks)
        near = {group.members[m].rack or None for m in members} & all_racks
        calls_for_matching = bool(near) and any(r != all_racks for r in racks)
        tables.append(_Table(members, racks, calls_for_matching, *divmod(count, len(members))))
    return tables


def _matched(group: NumberedGroup, tables: list[_Table]) -> list[list[TopicPartition]]:
    racks = [member.rack or None for member in group.members]
    alike: dict[tuple[tuple[int, ...], int], list[_Table]] = {}
    for table in tables:
        if any(racks[m] for m in table.members):
            alike.setdefault((table.members, len(table.racks)), []).append(table)
    for together in alike.values():
        if len(together) > 1:
            _match_together(together, racks)
        elif together[0].calls_for_matching:
            _match_alone(together[0], racks)
    dealt: list[list[TopicPartition]] = [[] for _ in group.members]
    for table, topic in zip(tables, group.topics, strict=True):
        _deal_the_rest(table)
        row = partitions_of(topic, len(table.racks))
        for member, mine in table.taken.items():
            dealt[member] += [row[p] for p in sorted(mine)]
    return dealt


def _match_together(tables: list[_Table], racks: list[Rack | None]) -> None:
    """Match several topics together; they stay in step, so the first one's room is that of all."""
    first = tables[0]
    standing: dict[Rack | None, list[int]] = {}
    for member in reversed(first.members):
        standing.setdefault(racks[member], []).append(member)
    for partition in range(len(first.racks)):
        shared = frozenset.intersection(*(table.racks[partition] for table in tables))
        candidates = []
        for rack in (None, *shared):
            waiting = standing.get(rack, [])
            while waiting and not first.room(waiting[-1]):  # room only ever shrinks
                waiting.pop()
            candidates += waiting[-1:]
        if candidates:
            # Members are numbered in their order, so the lowest is the first.
            for table in tables:
                table.take(min(candidates), [partition])


def _match_alone(table: _Table, racks: list[Rack | None]) -> None:
    left = dict.fromkeys(range(len(table.racks)))
    matching: dict[Rack | None, Iterator[int]] = {None: iter(range(len(table.racks)))}
    for rack in {racks[m] for m in table.members} - {None}:
        matching[rack] = iter([p for p, of in enumerate(table.racks) if rack in of])
    for member in table.members:
        found = list(islice((p for p in matching[racks[member]] if p in left), table.room(member)))
        table.take(member, found)
        for partition in found:
            del left[partition]


def _deal_the_rest(table: _Table) -> None:
    gone = {p for mine in table.taken.values() for p in mine}
    left = (p for p in range(len(table.racks)) if p not in gone)
    for member in table.members:
        table.take(member, list(islice(left, table.room(member))))
