"""What a plan makes of a cluster, and why it makes no more of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from restow.model import ANY_DIR
from restow.plan.framing import ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.model import BrokerId, LiveBroker, Move, Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.arrays import Arrays, Floats
    from restow.plan.framing import Asked
    from restow.plan.request import Request

_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalLine:
    """One goal: the largest and the smallest multiple of its share that a broker has, before and after."""

    name: str
    unit: str
    band: float | None
    before: tuple[float, float]
    after: tuple[float, float]
    out_of_band: int
    """How many brokers are out of their bands afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Bytes and replicas of a broker, a rack or a directory."""

    name: str
    before_bytes: int
    after_bytes: int
    before_replicas: int
    after_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A goal that a broker does not reach, and what stands in the way."""

    goal: str
    broker: BrokerId
    ratio: float
    """What it has in multiples of its share."""
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything there is to say about a plan."""

    goals: tuple[GoalLine, ...]
    brokers: tuple[Amount, ...]
    racks: tuple[Amount, ...]
    dirs: tuple[Amount, ...]
    reasons: Mapping[str, int]
    """How many moves serve which goal or demand."""
    unmet: tuple[Unmet, ...]
    notes: tuple[str, ...]
    copied_bytes: int
    bound_bytes: int | None

    @property
    def ratio(self) -> float | None:
        """Bytes copied over the least possible; None where nothing has to be copied."""
        return self.copied_bytes / self.bound_bytes if self.bound_bytes else None


def explain(
    snapshot: Snapshot,
    load: LoadModel | None,
    plan: Plan,
    request: Request,
    asked: Asked | None = None,
) -> Explanation:
    """Explain a plan that was made from this snapshot and this request, which `asked` has in numbers."""
    asked = asked or ask(snapshot, load, request)
    before, after = _loads(asked, plan.moves)
    reasons: dict[str, int] = {}
    for move in plan.moves:
        kind = move.reason.partition(":")[0]
        reasons[kind] = reasons.get(kind, 0) + 1
    brokers, racks, dirs = _amounts(snapshot, asked.arrays, plan.moves)
    return Explanation(
        goals=tuple(_goal_line(asked, number, before, after) for number in range(len(asked.goals))),
        brokers=brokers,
        racks=racks,
        dirs=dirs,
        reasons=reasons,
        unmet=tuple(_unmet(asked, after, plan.moves)),
        notes=tuple(_notes(asked, load)),
        copied_bytes=plan.bytes_to_copy,
        bound_bytes=plan.bound_bytes,
    )


def _loads(asked: Asked, moves: Sequence[Move]) -> tuple[Floats, Floats]:
    """Brokers × goals: what each carries before and after, led by the first replica that is there."""
    arrays, problem = asked.arrays, asked.problem
    before = np.zeros_like(problem.lower)
    counts = arrays.counts
    for goal in range(before.shape[1]):
        carried = np.repeat(problem.following[:, goal], counts)
        carried[arrays.leader] = problem.leading[:, goal]
        before[:, goal] = np.bincount(arrays.holder, carried, minlength=len(before))
    after = before.copy()
    if not moves:
        return before, after
    number = {name: at for at, name in enumerate(arrays.names)}
    alive, index = arrays.alive.tolist(), arrays.index
    rows = np.array([number[move.partition] for move in moves])
    for sign, side in ((-1.0, [move.before for move in moves]), (1.0, [move.after for move in moves])):
        places = [[index[broker] for broker in replicas] for replicas in side]
        leaders = np.array([next((each for each in some if alive[each]), some[0]) for some in places])
        flat, spread = np.array([*chain(*places)]), np.repeat(rows, [len(some) for some in places])
        for goal in range(after.shape[1]):
            following = problem.following[:, goal]
            column = after[:, goal].copy()
            np.add.at(column, flat, sign * following[spread])
            np.add.at(column, leaders, sign * (problem.leading[:, goal] - following)[rows])
            after[:, goal] = column
    return before, after


def _goal_line(asked: Asked, number: int, before: Floats, after: Floats) -> GoalLine:
    goal = asked.goals[number]
    return GoalLine(
        name=goal.name,
        unit=goal.unit,
        band=asked.request.bands.get(goal.name, goal.band),
        before=_extremes(asked, number, before),
        after=_extremes(asked, number, after),
        out_of_band=len(_outside(asked, number, after)),
    )


def _extremes(asked: Asked, number: int, load: Floats) -> tuple[float, float]:
    """The largest and the smallest multiple of its share that a broker has."""
    share = asked.share[:, number]
    some = share > 0
    ratios = load[some, number] / share[some]
    return (float(ratios.max()), float(ratios.min())) if ratios.size else (1.0, 1.0)


def _outside(asked: Asked, number: int, load: Floats) -> list[tuple[int, bool]]:
    """Brokers that are out of a band, each with whether it has too much."""
    found = []
    mean = float(asked.share[:, number].max()) or 1.0
    for broker in np.flatnonzero(asked.able).tolist():
        has = load[broker, number]
        if has > asked.problem.upper[broker, number] + _SLACK * mean:
            found.append((broker, True))
        elif has < asked.problem.lower[broker, number] - _SLACK * mean:
            found.append((broker, False))
    return found


def _unmet(asked: Asked, after: Floats, moves: Sequence[Move]) -> list[Unmet]:
    found = []
    for number, goal in enumerate(asked.goals):
        for broker, above in _outside(asked, number, after):
            name = asked.arrays.brokers[broker]
            share = float(asked.share[broker, number])
            found.append(
                Unmet(
                    goal=goal.name,
                    broker=name,
                    ratio=float(after[broker, number]) / share if share > 0 else float("inf"),
                    because=_because(asked, number, broker, above, moves),
                )
            )
    return found


def _because(asked: Asked, number: int, broker: int, above: bool, moves: Sequence[Move]) -> str:
    """The constraint that stops it, by name."""
    request, problem, slots = asked.request, asked.problem, asked.slots
    if request.most_moves is not None and len(moves) >= request.most_moves:
        return f"no more than {request.most_moves:,} moves are allowed"
    if request.most_bytes is not None:
        return f"no more than {request.most_bytes:,} bytes may be copied"
    here = slots.home == broker
    carried = np.minimum(problem.leading, problem.following)[:, number]
    fixed = float(carried[slots.part_of[here & ~problem.movable & ~problem.forced]].sum())
    if above and fixed > problem.upper[broker, number]:
        if request.sheds:
            return "what must not be touched is more than the band allows"
        return "it can only change if replicas are copied, which was not asked for"
    heaviest = float(np.maximum(problem.leading, problem.following)[:, number].max())
    width = float(problem.upper[broker, number] - problem.lower[broker, number])
    if heaviest > width:
        share = heaviest / max(float(asked.share[broker, number]), 1e-300)
        return f"single replicas are too large: up to {share:.0%} of the broker's share, more than the band"
    factor, racks = int(np.diff(slots.offsets).max()), len(np.unique(asked.arrays.rack[asked.able]))
    if factor >= racks:
        return f"with a replica in each of {racks} racks, what a rack has cannot go to another"
    if not above and not problem.receives[broker]:
        return "only the brokers that are being added are given replicas"
    return "nothing was found that would help; try another seed, a wider band, or more time"


def _notes(asked: Asked, load: LoadModel | None) -> list[str]:
    notes = []
    if load is None:
        notes.append("there is no load model: this goes by the sizes of log dirs and by numbers alone")
    left = int((~asked.arrays.settled).sum())
    if left:
        notes.append(f"{left:,} partitions have no leader or are being moved: they are left alone")
    elsewhere = sum(
        each.leader is not None and each.leader != each.replicas[0] for each in asked.arrays.partitions
    )
    if elsewhere:
        notes.append(
            f"{elsewhere:,} partitions are not led by their first replica: loads are counted as if they were"
        )
    counts = np.diff(asked.slots.offsets)
    racks = len(np.unique(asked.arrays.rack[asked.able]))
    if (counts > racks).any():
        notes.append(
            f"{int((counts > racks).sum()):,} partitions have more replicas than there are racks ({racks}): "
            f"{int(counts.max()) - racks} more would keep all of them apart"
        )
    return notes


def _amounts(
    snapshot: Snapshot, arrays: Arrays, moves: Sequence[Move]
) -> tuple[tuple[Amount, ...], tuple[Amount, ...], tuple[Amount, ...]]:
    """Bytes and replicas by broker, by rack and by directory."""
    by_name = {move.partition: move for move in moves}
    only = {broker.id: _only_path(broker) for broker in snapshot.brokers}
    rows: dict[tuple[BrokerId, str], list[int]] = {
        (broker.id, each.path): [0, 0, 0, 0] for broker in snapshot.brokers for each in broker.log_dirs
    }
    sizes = arrays.facts.size_bytes.astype(np.int64).tolist()
    for name, partition, size in zip(arrays.names, arrays.partitions, sizes, strict=True):
        lies = {broker: path for broker, path, _, _, future in partition.copies if not future}
        for broker in partition.replicas:
            place = broker, lies.get(broker) or only.get(broker, ANY_DIR)
            row = rows.get(place) or rows.setdefault(place, [0, 0, 0, 0])
            row[0] += size
            row[2] += 1
        move = by_name.get(name)
        if move is None:
            continue
        wishes = zip(move.after, move.log_dirs, strict=False)
        then = lies | {each: path for each, path in wishes if path != ANY_DIR}
        for sign, replicas, paths in ((-1, partition.replicas, lies), (1, move.after, then)):
            for broker in replicas:
                place = broker, paths.get(broker) or only.get(broker, ANY_DIR)
                row = rows.get(place) or rows.setdefault(place, [0, 0, 0, 0])
                row[1] += sign * size
                row[3] += sign
    for row in rows.values():
        row[1] += row[0]
        row[3] += row[2]
    racks = {broker.id: broker.rack or "no rack" for broker in snapshot.brokers}
    brokers = {str(broker.id): [0, 0, 0, 0] for broker in snapshot.brokers}
    by_rack: dict[str, list[int]] = {}
    for (broker, _), row in rows.items():
        _add(brokers, str(broker), row)
        _add(by_rack, racks.get(broker, "down"), row)
    dirs = {f"{broker}:{path}": row for (broker, path), row in rows.items()}
    in_order = sorted(_lines(brokers), key=lambda each: int(each.name))
    return tuple(in_order), _lines(by_rack), _lines(dirs)


def _add(table: dict[str, list[int]], key: str, row: Sequence[int]) -> None:
    table[key] = [have + more for have, more in zip(table.get(key, (0, 0, 0, 0)), row, strict=True)]


def _lines(table: Mapping[str, Sequence[int]]) -> tuple[Amount, ...]:
    return tuple(
        Amount(
            name=key, before_bytes=row[0], after_bytes=row[1], before_replicas=row[2], after_replicas=row[3]
        )
        for key, row in table.items()
    )


def _only_path(broker: LiveBroker) -> str:
    """Where replicas lie of which nothing is known: in the only directory there is."""
    working = [each.path for each in broker.log_dirs if not each.failed]
    return working[0] if len(working) == 1 else ANY_DIR
