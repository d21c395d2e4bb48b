"""What a plan makes of a cluster, and why it makes no more of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.plan.evaluate import evaluate
from restow.plan.framing import ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.model import BrokerId, Move, Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.evaluate import Score
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


def explain(snapshot: Snapshot, load: LoadModel | None, plan: Plan, request: Request) -> Explanation:
    """Explain a plan that was made from this snapshot and this request."""
    asked = ask(snapshot, load, request)
    scores = evaluate(snapshot, load, plan.moves, request).scores
    reasons: dict[str, int] = {}
    for move in plan.moves:
        kind = move.reason.partition(":")[0]
        reasons[kind] = reasons.get(kind, 0) + 1
    brokers, racks, dirs = _amounts(snapshot, plan.moves)
    return Explanation(
        goals=tuple(_goal_line(asked, number, scores) for number in range(len(asked.goals))),
        brokers=brokers,
        racks=racks,
        dirs=dirs,
        reasons=reasons,
        unmet=tuple(_unmet(asked, scores, plan.moves)),
        notes=tuple(_notes(asked, load)),
        copied_bytes=plan.bytes_to_copy,
        bound_bytes=plan.bound_bytes,
    )


def _goal_line(asked: Asked, number: int, scores: Mapping[str, Score]) -> GoalLine:
    goal = asked.goals[number]
    score = scores[goal.name]
    outside = sum(1 for _ in _outside(asked, number, score))
    return GoalLine(
        name=goal.name,
        unit=goal.unit,
        band=asked.request.bands.get(goal.name, goal.band),
        before=score.ratio(after=False),
        after=score.ratio(),
        out_of_band=outside,
    )


def _outside(asked: Asked, number: int, score: Score) -> list[tuple[int, bool]]:
    """Brokers that are out of a band, each with whether it has too much."""
    found = []
    mean = float(asked.share[:, number].max()) or 1.0
    for broker in np.flatnonzero(asked.able).tolist():
        has = score.after[asked.arrays.brokers[broker]]
        if has > asked.problem.upper[broker, number] + _SLACK * mean:
            found.append((broker, True))
        elif has < asked.problem.lower[broker, number] - _SLACK * mean:
            found.append((broker, False))
    return found


def _unmet(asked: Asked, scores: Mapping[str, Score], moves: Sequence[Move]) -> list[Unmet]:
    found = []
    for number, goal in enumerate(asked.goals):
        score = scores[goal.name]
        for broker, above in _outside(asked, number, score):
            name = asked.arrays.brokers[broker]
            share = float(asked.share[broker, number])
            found.append(
                Unmet(
                    goal=goal.name,
                    broker=name,
                    ratio=score.after[name] / share if share > 0 else float("inf"),
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
            f"{int(counts.max()) - racks} more racks would keep all of them apart"
        )
    return notes


def _amounts(
    snapshot: Snapshot, moves: Sequence[Move]
) -> tuple[tuple[Amount, ...], tuple[Amount, ...], tuple[Amount, ...]]:
    """Bytes and replicas by broker, by rack and by directory."""
    by_name = {move.partition: move for move in moves}
    racks = {broker.id: broker.rack or "no rack" for broker in snapshot.brokers}
    tables: tuple[dict[str, list[int]], ...] = (
        {str(broker.id): [0, 0, 0, 0] for broker in snapshot.brokers},
        {},
        {f"{broker.id}:{each.path}": [0, 0, 0, 0] for broker in snapshot.brokers for each in broker.log_dirs},
    )
    for name, partition in snapshot.all_partitions():
        move, size = by_name.get(name), partition.size_bytes
        lies = {copy.broker: copy.log_dir for copy in partition.copies if not copy.future}
        then = dict(lies)
        if move is not None:
            then |= {
                each: path for each, path in zip(move.after, move.log_dirs, strict=False) if path != "any"
            }
        sides = ((0, partition.replicas, lies), (1, partition.replicas if move is None else move.after, then))
        for side, replicas, paths in sides:
            for broker in replicas:
                keys = (str(broker), racks.get(broker, "down"), f"{broker}:{_path(snapshot, broker, paths)}")
                for table, key in zip(tables, keys, strict=True):
                    row = table.setdefault(key, [0, 0, 0, 0])
                    row[side] += size
                    row[side + 2] += 1
    brokers, by_rack, dirs = (
        tuple(
            Amount(
                name=key,
                before_bytes=row[0],
                after_bytes=row[1],
                before_replicas=row[2],
                after_replicas=row[3],
            )
            for key, row in table.items()
        )
        for table in tables
    )
    return tuple(sorted(brokers, key=lambda each: int(each.name))), by_rack, dirs


def _path(snapshot: Snapshot, broker: BrokerId, paths: Mapping[BrokerId, str]) -> str:
    """Where a replica lies or will lie: as is known, or in the only directory there is."""
    there = snapshot.broker.get(broker)
    working = [each.path for each in there.log_dirs if not each.failed] if there else []
    return paths.get(broker) or (working[0] if len(working) == 1 else "any")
