"""From a snapshot and a request to a plan.

snapshot, load ─► arrays ─► problem (bands, what must and what may move) ─► search ─► moves ─► waves
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.errors import InvalidInput
from restow.model import Move, Plan
from restow.plan.arrays import Arrays, arrays_of
from restow.plan.bound import HOW, least_bytes
from restow.plan.goals import GOALS, resource_goal
from restow.plan.search import Problem, solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import Snapshot
    from restow.model.load import LoadModel
    from restow.plan.goals import Columns, Goal
    from restow.plan.request import Request
    from restow.plan.search import Solution
    from restow.plan.search.ground import Bools, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request in numbers."""

    arrays: Arrays
    goals: tuple[Goal, ...]
    problem: Problem


def ask(snapshot: Snapshot, load: LoadModel | None, request: Request) -> Asked:
    """Put a request into numbers, or say why it cannot be."""
    arrays = arrays_of(snapshot, load, request.fill)
    _check(arrays, request)
    wanted = [*GOALS, *(resource_goal(name) for name in _others(arrays))]
    found = [(goal, goal.columns(arrays.facts)) for goal in wanted]
    goals = [(goal, columns) for goal, columns in found if columns is not None]
    able = _able(arrays, request)
    covered = np.array([request.covers(name.topic) for name in arrays.names], dtype=bool)
    covered &= np.array([name not in request.except_partitions for name in arrays.names], dtype=bool)
    counts = np.diff(arrays.offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    forced = _forced(arrays, request, covered[part_of])
    lower, upper = _bands(arrays, request, goals, able)
    problem = Problem(
        rack=arrays.rack,
        offsets=arrays.offsets,
        home=arrays.holder,
        leader=arrays.leader,
        leading=np.stack([columns.leading for _, columns in goals], axis=1),
        following=np.stack([columns.following for _, columns in goals], axis=1),
        lower=lower,
        upper=upper,
        room=arrays.room,
        racks_wanted=np.minimum(counts, len(np.unique(arrays.rack[able]))),
        receives=able,
        may_lead=able,
        forced=forced,
        movable=covered[part_of] & able[arrays.holder] & (request.balance or bool(request.relieve)),
        may_change_leader=covered & (_touched(arrays, forced) | request.balance | request.leaders),
        sheds=request.balance or bool(request.relieve),
        seed=request.seed,
    )
    return Asked(arrays=arrays, goals=tuple(goal for goal, _ in goals), problem=problem)


def propose_moves(asked: Asked) -> tuple[Solution, tuple[Move, ...]]:
    """Search, and turn what was found into moves."""
    solution = solve(asked.problem)
    if solution.homeless.size:
        raise InvalidInput(_homeless(asked, solution))
    return solution, moves_of(asked.arrays, solution)


def propose(snapshot: Snapshot, load: LoadModel | None, request: Request, *, created_ms: int) -> Plan:
    """The plan for a request, its waves not yet in order."""
    asked = ask(snapshot, load, request)
    _, moves = propose_moves(asked)
    return Plan(
        cluster_id=snapshot.cluster_id,
        created_ms=created_ms,
        moves=moves,
        bound_bytes=int(least_bytes(asked.problem)),
        bound_by=HOW,
    )


def moves_of(arrays: Arrays, solution: Solution) -> tuple[Move, ...]:
    """What changes, partition by partition: who leads comes first, the others keep their places."""
    offsets = arrays.offsets
    replicas_changed = np.add.reduceat(solution.holder != arrays.holder, offsets[:-1]) > 0
    changed = np.flatnonzero(replicas_changed | (solution.leader != arrays.leader))
    brokers = arrays.brokers
    moves = []
    for number in changed.tolist():
        first, last = int(offsets[number]), int(offsets[number + 1])
        before = tuple(brokers[at] for at in arrays.holder[first:last].tolist())
        after = [brokers[at] for at in solution.holder[first:last].tolist()]
        after.insert(0, after.pop(int(solution.leader[number]) - first))
        moves.append(
            Move(
                partition=arrays.names[number],
                before=before,
                after=tuple(after),
                size_bytes=int(arrays.facts.size_bytes[number]),
            )
        )
    return tuple(moves)


def _others(arrays: Arrays) -> list[str]:
    known = {goal.name for goal in GOALS}
    return [name for name in arrays.facts.resources if name not in known]


def _check(arrays: Arrays, request: Request) -> None:
    named = request.drain | request.except_brokers | request.replace.keys() | set(request.replace.values())
    unknown = sorted(named - set(arrays.brokers))
    if unknown:
        there = ", ".join(map(str, arrays.brokers))
        raise InvalidInput(f"unknown brokers {', '.join(map(str, unknown))}: there are {there}")


def _able(arrays: Arrays, request: Request) -> Bools:
    """Which brokers may be given something."""
    barred = request.drain | request.except_brokers | request.replace.keys()
    able: Bools = arrays.alive & np.array([broker not in barred for broker in arrays.brokers], dtype=bool)
    if not able.any():
        raise InvalidInput("no broker is left that could take a replica: drain or exclude fewer")
    return able


def _forced(arrays: Arrays, request: Request, covered: Bools) -> Bools:
    """What must go: everything on drained brokers, and of each rack that is there twice one."""
    drained = np.array([broker in request.drain for broker in arrays.brokers], dtype=bool)
    forced = drained[arrays.holder] & covered
    if request.fix_racks:
        wanted = len(np.unique(arrays.rack[arrays.alive]))
        for number in range(len(arrays.names)):
            first, last = arrays.offsets[number], arrays.offsets[number + 1]
            seen: set[int] = set()
            missing = min(last - first, wanted) - len(set(arrays.rack[arrays.holder[first:last]].tolist()))
            for replica in range(first, last):
                rack = int(arrays.rack[arrays.holder[replica]])
                if rack in seen and missing > 0 and covered[replica]:
                    forced[replica] = True
                    missing -= 1
                seen.add(rack)
    return forced


def _touched(arrays: Arrays, forced: Bools) -> Bools:
    touched: Bools = np.add.reduceat(forced, arrays.offsets[:-1]) > 0
    return touched


def _bands(
    arrays: Arrays, request: Request, goals: Sequence[tuple[Goal, Columns]], able: Bools
) -> tuple[Floats, Floats]:
    """Between what and what each broker should have of each goal.

    Where nothing is to be balanced, a broker may keep what it has, but gets no worse than its band.
    """
    counts = np.diff(arrays.offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    lower = np.zeros((len(arrays.brokers), len(goals)))
    upper = np.full_like(lower, np.inf)
    for number, (goal, columns) in enumerate(goals):
        strength = np.where(able, columns.strength, 0.0)
        total = float((columns.leading + columns.following * (counts - 1)).sum())
        share = total * strength / strength.sum()
        band = request.bands.get(goal.name, goal.band)
        now = np.bincount(arrays.holder, columns.following[part_of], minlength=len(able))
        extra = columns.leading - columns.following
        now += np.bincount(arrays.holder[arrays.leader], extra, minlength=len(able))
        if request.balance or request.leaders:
            lower[:, number], upper[:, number] = share * (1 - band), share * (1 + band)
        elif goal.name in request.relieve:
            upper[:, number] = share * request.relieve[goal.name]
        else:
            upper[able, number] = np.maximum(share * (1 + band), now)[able]
        lower[~able, number] = 0.0
        if not request.balance:
            upper[~able, number] = np.maximum(upper[~able, number], now[~able])
    return lower, upper


def _homeless(asked: Asked, solution: Solution) -> str:
    arrays = asked.arrays
    counts = np.diff(arrays.offsets)
    partition = np.repeat(np.arange(len(counts)), counts)[int(solution.homeless[0])]
    name = arrays.names[int(partition)]
    return (
        f"{len(solution.homeless)} replicas fit nowhere, the first of {name.topic}-{name.partition} with "
        f"{arrays.facts.size_bytes[partition]:,.0f} bytes: add brokers or disk, or raise the limit of filling"
    )
