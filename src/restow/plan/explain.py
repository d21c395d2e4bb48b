"""What a plan makes of a cluster, and why it makes no more of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.plan.amounts import by_broker_and_rack, sides_of
from restow.plan.framing import ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.model import BrokerId, Move, Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.amounts import Amount, Side
    from restow.plan.arrays import Floats
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
    sides = sides_of(asked.arrays, plan.moves)
    before, after = _loads(asked, sides)
    reasons: dict[str, int] = {}
    for move in plan.moves:
        kind = move.reason.partition(":")[0]
        reasons[kind] = reasons.get(kind, 0) + 1
    brokers, racks = by_broker_and_rack(snapshot, asked.arrays, sides)
    return Explanation(
        goals=tuple(_goal_line(asked, number, before, after) for number in range(len(asked.goals))),
        brokers=brokers,
        racks=racks,
        reasons=reasons,
        unmet=tuple(_unmet(asked, after, plan.moves)),
        notes=tuple(_notes(asked, load)),
        copied_bytes=plan.bytes_to_copy,
        bound_bytes=plan.bound_bytes,
    )


def _loads(asked: Asked, sides: tuple[Side, Side] | None) -> tuple[Floats, Floats]:
    """Brokers × goals: what each carries before and after, led by the first replica that is there."""
    arrays, problem = asked.arrays, asked.problem
    before = np.zeros_like(problem.lower)
    counts = arrays.counts
    for goal in range(before.shape[1]):
        carried = np.repeat(problem.following[:, goal], counts)
        carried[arrays.leader] = problem.leading[:, goal]
        before[:, goal] = np.bincount(arrays.holder, carried, minlength=len(before))
    after = before.copy()
    for sign, side in zip((-1.0, 1.0), sides or (), strict=False):
        for goal in range(after.shape[1]):
            following = problem.following[:, goal]
            column = after[:, goal].copy()
            np.add.at(column, side.places, sign * following[side.part_of])
            np.add.at(column, side.leaders, sign * (problem.leading[:, goal] - following)[side.rows])
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
        [
            leader is not None and leader != replicas[0]
            for _, replicas, _, leader, _, _, _ in asked.arrays.partitions
        ]
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
