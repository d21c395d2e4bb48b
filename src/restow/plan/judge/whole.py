"""Compute exactly what a plan for a small cluster must copy: as an integer program, which HiGHS solves.

x[p, b]: partition p has a replica on broker b; y[p, b]: it leads there; z[p, r]: it is in rack r. Other
bounds divide replicas among brokers. In a cluster of a few dozen partitions that proves too little, and a
plan that is optimal is not known to be.

HiGHS is optional (`restow[plan]`). It is asked about small clusters alone, and only where every rule of the
search is a row of the program: otherwise there is no answer.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from restow.plan.search import Problem
    from restow.plan.search.problem import Bools, Floats, Ints

HOW_WHOLE = "for whole replicas and leaders, by HiGHS on an integer program"
_SOLVES = find_spec("highspy") is not None
# So many partitions × brokers at most, and so many branches: the same plan on every machine.
_MOST_PLACES, _MOST_BRANCHES = 1_000, 200
# How near to the optimum is near enough, and what the solver's tolerance may be worth at the most.
_GAP, _TOLERANCE = 5e-5, 1e-6
NEAR = 1.005
"""A placement that copies this many times the bound ends the solver's work once it would have to branch."""


class Whole(NamedTuple):
    """What the integer program proves, and the best placement that it found."""

    least_bytes: float
    holder: Ints
    """The broker of each replica; empty if none was found."""
    leader: Ints


class _Program:
    """Rows of a program, each with the columns that count in it."""

    def __init__(self, columns: int) -> None:
        self.cost, self.least, self.most = np.zeros(columns), np.zeros(columns), np.ones(columns)
        self.starts, self.low, self.high = [0], list[float](), list[float]()
        self.index, self.value = list[int](), list[float]()

    def add(self, columns: Ints, values: Floats | float, low: float, high: float) -> None:
        self.index += columns.tolist()
        self.value += np.broadcast_to(np.asarray(values, dtype=np.float64), columns.shape).tolist()
        self.starts.append(len(self.index))
        self.low.append(low)
        self.high.append(high)


def can_be_whole(problem: Problem) -> bool:
    """Return whether HiGHS is there, the cluster small, and each rule of the search a row of the program."""
    moves_leader = (problem.movable | problem.forced)[problem.leader]
    limits = (problem.topic_replicas, problem.topic_leaders)
    return bool(
        _SOLVES
        and problem.sheds
        and not any(each is not None and len(each) for each in limits)
        and not (moves_leader & ~problem.may_change_leader).any()
        and len(problem.leader) * len(problem.rack) <= _MOST_PLACES
    )


def least_as_whole(
    problem: Problem,
    out_of_time: Callable[[], bool],
    *,
    start: tuple[Ints, Ints] | None = None,
    enough_bytes: float = 0.0,
) -> Whole | None:
    """Return what the program proves, if it is feasible.

    `start` is a placement in band, with its leaders: the solver only has to find a better one, or that there
    is none. It stops at a placement that copies `enough_bytes` or fewer.
    """
    partitions, brokers = len(problem.leader), len(problem.rack)
    x = np.arange(partitions * brokers).reshape(partitions, brokers)
    y = x + x.size
    program = _program(problem, x, y)
    begin = None if start is None else _values(program, problem, x, y, *start)
    found = _solved(program, out_of_time, begin, enough_bytes)
    if found is None:
        return None
    bound, values = found
    least = max(bound - _TOLERANCE * max(abs(bound), float(program.cost.max())), 0.0)
    if not len(values):
        return Whole(least, problem.home[:0], problem.leader[:0])
    return Whole(least, *_placed(problem, values[x] > 0.5, values[y]))


def _program(problem: Problem, x: Ints, y: Ints) -> _Program:
    counts, racks = np.diff(problem.offsets), int(problem.rack.max()) + 1
    part_of = np.repeat(np.arange(len(counts)), counts)
    in_rack = [np.flatnonzero(problem.rack == rack) for rack in range(racks)]
    wanted = _racks_to_span(problem)
    doubled = (wanted > 1) & (wanted < counts)
    program = _Program(2 * x.size + int(doubled.sum()) * racks)
    z: Ints = 2 * x.size + (np.cumsum(doubled) - 1)[:, None] * racks + np.arange(racks)
    _say_where(problem, part_of, program, x, y)
    for partition, count in enumerate(counts.tolist()):
        program.add(x[partition], 1.0, count, count)
        program.add(y[partition], 1.0, 1.0, 1.0)
        for broker in range(len(problem.rack)):
            program.add(
                np.array([y[partition, broker], x[partition, broker]]), np.array([1.0, -1.0]), -1.0, 0.0
            )
        if wanted[partition] <= 1:
            continue
        for rack, brokers in enumerate(in_rack):
            there = x[partition, brokers]
            if not doubled[partition]:
                if len(there) > 1:
                    program.add(there, 1.0, 0.0, 1.0)
                continue
            one = np.concatenate(([1.0], np.full(len(there), -1.0)))
            program.add(np.concatenate(([z[partition, rack]], there)), one, -np.inf, 0.0)
        if doubled[partition]:
            program.add(z[partition], 1.0, float(wanted[partition]), racks)
    _keep_bands(problem, part_of, program, x, y)
    return program


def _racks_to_span(problem: Problem) -> Ints:
    """Return how many racks each partition has to span: what has to move comes into racks of its own, and
    the others stay doubled, if they are.
    """
    wanted = problem.racks_wanted.copy()
    for partition in range(len(wanted)):
        slots = slice(int(problem.offsets[partition]), int(problem.offsets[partition + 1]))
        rests = (problem.home[slots] >= 0) & ~problem.forced[slots]
        spanned = len(np.unique(problem.rack[problem.home[slots][rests]]))
        wanted[partition] = min(int(wanted[partition]), spanned + int((~rests).sum()))
    return wanted


def _values(program: _Program, problem: Problem, x: Ints, y: Ints, holder: Ints, leader: Ints) -> Floats:
    """Return a placement and its leaders as values of the columns; those of racks are left to the solver."""
    values = np.zeros(len(program.cost))
    part_of = np.repeat(np.arange(len(leader)), np.diff(problem.offsets))
    values[x[part_of, holder]] = 1.0
    values[y[np.arange(len(leader)), holder[leader]]] = 1.0
    return values[: 2 * x.size]


def _say_where(problem: Problem, part_of: Ints, program: _Program, x: Ints, y: Ints) -> None:
    """Bound the columns: where replicas and leaders may be, or have to be; and what a new place costs."""
    there = problem.home >= 0
    rests, forced = there & ~problem.forced, there & problem.forced
    stays: Bools = np.zeros(x.shape, dtype=bool)
    stays[part_of[rests], problem.home[rests]] = True
    program.cost[x] = problem.following[:, :1] * ~stays
    program.most[x] = stays | problem.receives
    program.most[x[part_of[forced], problem.home[forced]]] = 0.0
    fixed = rests & ~problem.movable
    program.least[x[part_of[fixed], problem.home[fixed]]] = 1.0
    program.most[y] = problem.may_lead
    kept = ~problem.may_change_leader
    led = y[kept, problem.home[problem.leader[kept]]]
    program.most[y[kept]] = 0.0
    program.least[led] = program.most[led] = 1.0


def _keep_bands(problem: Problem, part_of: Ints, program: _Program, x: Ints, y: Ints) -> None:
    own = np.zeros(x.shape)
    there = problem.home >= 0
    if problem.own is not None:
        own[part_of[there], problem.home[there]] = problem.own[there]
    size = problem.following[part_of[there], 0] + own[part_of[there], problem.home[there]]
    held = np.bincount(problem.home[there], size, minlength=len(problem.rack))
    unit = np.maximum(problem.leading.max(axis=0), 1e-300)
    for broker in range(len(problem.rack)):
        both = np.concatenate((x[:, broker], y[:, broker]))
        for goal, of_one in enumerate(unit.tolist()):
            follows = problem.following[:, goal] + (own[:, broker] if goal == 0 else 0.0)
            values = np.concatenate((follows, (problem.leading - problem.following)[:, goal])) / of_one
            low, high = problem.lower[broker, goal] / of_one, problem.upper[broker, goal] / of_one
            program.add(both, values, low, high)
        if np.isfinite(problem.room[broker]):
            room = max(float(problem.room[broker]), float(held[broker])) / unit[0]
            program.add(x[:, broker], (problem.following[:, 0] + own[:, broker]) / unit[0], 0.0, room)


def _solved(
    program: _Program, out_of_time: Callable[[], bool], begin: Floats | None, enough_bytes: float
) -> tuple[float, Floats] | None:
    """Return the bytes that are proven and the values of the columns, none if it found no placement."""
    import highspy

    unit = float(program.cost.max()) or 1.0
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.low)
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost / unit, program.least, program.most
    model.row_lower_, model.row_upper_ = np.array(program.low), np.array(program.high)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.array(program.starts)
    model.a_matrix_.index_, model.a_matrix_.value_ = np.array(program.index), np.array(program.value)
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(program.cost)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_rel_gap", _GAP),
        ("mip_max_nodes", _MOST_BRANCHES),
        ("objective_target", enough_bytes / unit),
        # Small programs: a cut that does not bind costs more in each solution than to find it again.
        ("mip_pool_soft_limit", 100),
        ("mip_lp_age_limit", 2),
        # With a placement to begin with, these look in vain.
        ("mip_heuristic_run_feasibility_jump", begin is None),
        ("mip_allow_restart", begin is None),
        ("mip_heuristic_run_rins", begin is None),
    ):
        solver.setOptionValue(name, value)

    def look(event: Any) -> None:
        seen = event.data_out
        near = seen.mip_node_count > 0 and seen.mip_primal_bound <= seen.mip_dual_bound * NEAR
        event.interrupt(near or out_of_time())

    solver.cbMipInterrupt.subscribe(look)
    solver.passModel(model)
    if begin is not None:
        solver.setSolution(len(begin), np.arange(len(begin), dtype=np.int32), begin)
    solver.run()
    info = solver.getInfo()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible or not np.isfinite(
        info.mip_dual_bound
    ):
        return None
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(solver.getSolution().col_value if feasible else [])
    return info.mip_dual_bound * unit, values


def _placed(problem: Problem, on: Bools, leads: Floats) -> tuple[Ints, Ints]:
    """Return the broker of each replica, those that may stay in their place, and the leading replicas."""
    holder, leader = problem.home.copy(), problem.leader.copy()
    for partition in range(len(leader)):
        slots = range(int(problem.offsets[partition]), int(problem.offsets[partition + 1]))
        stays = {
            int(problem.home[slot]): slot
            for slot in slots
            if problem.home[slot] >= 0 and not problem.forced[slot] and on[partition, problem.home[slot]]
        }
        free = [slot for slot in slots if slot not in stays.values()]
        new = [broker for broker in np.flatnonzero(on[partition]).tolist() if broker not in stays]
        for slot, broker in zip(free, new, strict=True):
            holder[slot] = broker
        led = int(np.argmax(leads[partition]))
        leader[partition] = next(slot for slot in slots if holder[slot] == led)
    return holder, leader
