"""Count bytes and replicas by broker, rack and log dir, before a plan and after it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow._frozen import frozen
from restow.model import ANY_DIR
from restow.plan.search.arrays import first_alive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.model import BrokerId, LiveBroker, Move, Snapshot
    from restow.plan.request.framing import Asked
    from restow.plan.search.arrays import Arrays
    from restow.plan.search.problem import Floats, Ints


@frozen
class Amount:
    """Bytes and replicas of a broker, a rack or a log dir.

    The bytes are None if no size of its replicas is known: those of a dead broker that nobody else has.
    """

    name: str
    before_bytes: int | None
    after_bytes: int | None
    before_replicas: int
    after_replicas: int


class PlanSide(NamedTuple):
    """All moves as arrays, with their replicas before or after."""

    rows: Ints
    """The partition of each move."""
    leaders: Ints
    """The leader of each move's partition: the first live replica."""
    part_of: Ints
    """The partition of each replica of all moves."""
    places: Ints
    """The broker of each replica of all moves."""


def sides_of(arrays: Arrays, moves: Sequence[Move]) -> tuple[PlanSide, PlanSide] | None:
    """Return the moves as arrays, before and after; None if nothing moves."""
    if not moves:
        return None
    starts = np.flatnonzero(np.diff(arrays.topic, prepend=-1)).tolist()
    first = {arrays.names[at].topic: at for at in starts}
    rows = np.array([first[topic] + number for topic, number in (move.partition for move in moves)])
    before = _side(arrays, rows, [move.before for move in moves])
    return before, _side(arrays, rows, [move.after for move in moves])


def _side(arrays: Arrays, rows: Ints, replicas: Sequence[tuple[BrokerId, ...]]) -> PlanSide:
    counts = np.fromiter(map(len, replicas), np.int64, len(replicas))
    offsets = np.concatenate(([0], np.cumsum(counts)))
    places = np.fromiter(
        map(arrays.index.__getitem__, chain.from_iterable(replicas)), np.int64, int(offsets[-1])
    )
    leaders = places[first_alive(offsets, places, arrays.alive)]
    return PlanSide(rows=rows, leaders=leaders, part_of=np.repeat(rows, counts), places=places)


def loads_of(
    asked: Asked, moves: Sequence[Move], sides: tuple[PlanSide, PlanSide] | None
) -> tuple[Floats, Floats]:
    """Return brokers × goals before and after, with the first live replica as the leader."""
    arrays, problem = asked.arrays, asked.problem
    before = np.zeros_like(problem.lower)
    counts = arrays.counts
    for goal in range(before.shape[1]):
        carried = np.repeat(problem.following[:, goal], counts)
        carried[arrays.leader] = problem.leading[:, goal]
        before[:, goal] = np.bincount(arrays.holder, carried, minlength=len(before))
    before[:, 0] += _differing(arrays)
    after = before.copy()
    after[:, 0] += _freed(arrays, moves)
    for sign, side in zip((-1.0, 1.0), sides or (), strict=False):
        for goal in range(after.shape[1]):
            following = problem.following[:, goal]
            column = after[:, goal].copy()
            np.add.at(column, side.places, sign * following[side.part_of])
            np.add.at(column, side.leaders, sign * (problem.leading[:, goal] - following)[side.rows])
            after[:, goal] = column
    return before, after


def by_broker_and_rack(
    snapshot: Snapshot, arrays: Arrays, moves: Sequence[Move], sides: tuple[PlanSide, PlanSide] | None
) -> tuple[tuple[Amount, ...], tuple[Amount, ...]]:
    """Return amounts by broker, sorted by id, and by rack, by first broker; dead brokers are one rack.

    Existing replicas count with their own size, new ones with their leader's.
    """
    size = arrays.facts.size_bytes.astype(np.int64)
    unsized = _unsized(arrays)
    now = np.zeros((len(arrays.brokers), 3), dtype=np.int64)
    np.add.at(now[:, 0], arrays.holder, size[arrays.part_of])
    now[:, 0] += _differing(arrays)
    now[:, 1] = np.bincount(arrays.holder, minlength=len(now))
    np.add.at(now[:, 2], arrays.holder, unsized[arrays.part_of])
    then = now.copy()
    then[:, 0] += _freed(arrays, moves)
    for sign, side in zip((-1, 1), sides or (), strict=False):
        np.add.at(then[:, 0], side.places, sign * size[side.part_of])
        then[:, 1] += sign * np.bincount(side.places, minlength=len(now))
        np.add.at(then[:, 2], side.places, sign * unsized[side.part_of])
    racks = {broker.id: broker.rack or "no rack" for broker in snapshot.brokers}
    table = np.stack((now, then), axis=2).reshape(len(now), 6).tolist()
    by_rack: dict[str, list[int]] = {}
    for broker, row in zip(arrays.brokers, table, strict=True):
        _add(by_rack, racks.get(broker, "down"), row)
    return _lines(dict(zip(map(str, arrays.brokers), table, strict=True))), _lines(by_rack)


def _unsized(arrays: Arrays) -> Ints:
    """Return 1 for each partition that no broker has told the size of, and 0 for the others."""
    sizes = arrays.facts.size_bytes.tolist()
    return np.array(
        [not size and not each.copies for each, size in zip(arrays.partitions, sizes, strict=True)], np.int64
    )


def _differing(arrays: Arrays) -> Ints:
    """Return by how much each broker's bytes differ from the sizes of its partitions' leaders."""
    if arrays.own is None:
        return np.zeros(len(arrays.brokers), dtype=np.int64)
    return np.bincount(arrays.holder, arrays.own, minlength=len(arrays.brokers)).astype(np.int64)


def _freed(arrays: Arrays, moves: Sequence[Move]) -> Ints:
    """Return by how much less than their leaders' sizes the replicas have that leave each broker."""
    less = np.zeros(len(arrays.brokers), dtype=np.int64)
    for move in moves:
        for broker in move.removing:
            less[arrays.index[broker]] += move.size_bytes - move.own_size(broker)
    return less


def by_log_dir(snapshot: Snapshot, arrays: Arrays, moves: Sequence[Move]) -> tuple[Amount, ...]:
    """Return amounts by log dir. Where brokers choose among several, new replicas are in none of them."""
    by_name = {move.partition: move for move in moves}
    only = {broker.id: _only_path(broker) for broker in snapshot.brokers}
    rows: dict[tuple[BrokerId, str], list[int]] = {
        (broker.id, each.path): [0] * 6 for broker in snapshot.brokers for each in broker.log_dirs
    }
    sizes = arrays.facts.size_bytes.astype(np.int64).tolist()
    for name, partition, size in zip(arrays.names, arrays.partitions, sizes, strict=True):
        lies, own = partition.log_dirs, partition.own_sizes
        move = by_name.get(name)
        after, then = partition.replicas, lies
        if move is not None:
            targets = zip(move.after, move.log_dirs, strict=False)
            after, then = move.after, lies | {each: path for each, path in targets if path != ANY_DIR}
        for column, replicas, paths in ((0, partition.replicas, lies), (1, after, then)):
            for broker in replicas:
                place = broker, paths.get(broker) or only.get(broker, ANY_DIR)
                row = rows.get(place) or rows.setdefault(place, [0] * 6)
                row[column] += own.get(broker, size) if broker in partition.replicas else size
                row[column + 2] += 1
                row[column + 4] += not size and not partition.copies
    return _lines({f"{broker}:{path}": row for (broker, path), row in rows.items()})


def _add(table: dict[str, list[int]], key: str, row: Sequence[int]) -> None:
    table[key] = [have + more for have, more in zip(table.get(key, [0] * 6), row, strict=True)]


def _lines(table: Mapping[str, Sequence[int]]) -> tuple[Amount, ...]:
    """Make amounts of rows: bytes, replicas, and replicas of unknown size, each before and after."""
    return tuple(
        Amount(
            name=name,
            before_bytes=None if not before and unsized_before else before,
            after_bytes=None if not after and unsized_after else after,
            before_replicas=replicas_before,
            after_replicas=replicas_after,
        )
        for name, row in table.items()
        for before, after, replicas_before, replicas_after, unsized_before, unsized_after in (row,)
    )


def _only_path(broker: LiveBroker) -> str:
    """Return the only log dir of a broker, which holds the replicas with an unknown log dir."""
    working = [each.path for each in broker.working_dirs if not each.cordoned]
    return working[0] if len(working) == 1 else ANY_DIR
