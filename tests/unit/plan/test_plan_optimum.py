"""Small clusters, where an integer program solver knows the optimum: how near are plans to it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from restow.plan.judge.bound import least_bytes
from restow.plan.propose import propose
from restow.plan.request.framing import Asked, ask
from restow.plan.request.request import PlanRequest
from restow.plan.request.trim import load_of, out_of_band

from test_plan_propose import cluster, loads  # isort: skip

if TYPE_CHECKING:
    from restow.plan.search import Problem

SIZES = PlanRequest(balance=True, bands={"disk": 0.2})
LOADS = PlanRequest(
    balance=True, bands=dict.fromkeys(("disk", "bytes_in", "bytes_out", "cpu", "leader_bytes_in"), 0.4)
)


def optimum(problem: Problem, *, whole: bool = True) -> float | None:
    """Return the fewest bytes that bring every broker into every band, or None if nothing does.

    x[p, b]: partition p has a replica on broker b; y[p, b]: it leads there; z[p, r]: it is in rack r. If
    replicas need not be `whole`, this is the linear relaxation.
    """
    partitions, brokers, racks = len(problem.leader), len(problem.rack), int(problem.rack.max()) + 1
    part_of = np.repeat(np.arange(partitions), np.diff(problem.offsets))
    x = np.arange(partitions * brokers).reshape(partitions, brokers)
    y = x + x.size
    z = np.arange(partitions * racks).reshape(partitions, racks) + 2 * x.size
    size = 2 * x.size + z.size
    rows: list[tuple[dict[int, float], float, float]] = []
    more = np.zeros((partitions, brokers))
    if problem.own is not None:
        more[part_of, problem.home] = problem.own
    stays = np.zeros((partitions, brokers), dtype=bool)
    stays[part_of[~problem.forced], problem.home[~problem.forced]] = True
    cost, most = np.zeros(size), np.ones(size)
    cost[x] = problem.following[:, :1] * ~stays
    most[x] = stays | problem.receives
    most[x[part_of[problem.forced], problem.home[problem.forced]]] = 0.0
    most[y] = problem.may_lead
    for p in range(partitions):
        home = problem.home[problem.offsets[p] : problem.offsets[p + 1]]
        rows.append((dict.fromkeys(x[p].tolist(), 1.0), len(home), len(home)))
        rows.append((dict.fromkeys(y[p].tolist(), 1.0), 1, 1))
        rows += [({int(y[p, b]): 1.0, int(x[p, b]): -1.0}, -np.inf, 0) for b in range(brokers)]
        for r in range(racks):
            there = {int(x[p, b]): -1.0 for b in np.flatnonzero(problem.rack == r)}
            rows.append(({int(z[p, r]): 1.0, **there}, -np.inf, 0))
        rows.append((dict.fromkeys(z[p].tolist(), 1.0), len(set(problem.rack[home].tolist())), np.inf))
    unit = problem.leading.max(axis=0)
    for b in range(brokers):
        for goal in range(problem.lower.shape[1]):
            own = more[:, b] if goal == 0 else np.zeros(partitions)
            row = {int(x[p, b]): float(problem.following[p, goal] + own[p]) for p in range(partitions)}
            row |= {
                int(y[p, b]): float(problem.leading[p, goal] - problem.following[p, goal])
                for p in range(partitions)
            }
            scaled = {at: value / unit[goal] for at, value in row.items()}
            low, high = problem.lower[b, goal] / unit[goal], problem.upper[b, goal] / unit[goal]
            rows.append((scaled, float(low), float(high)))
    values = [value for row, _, _ in rows for value in row.values()]
    columns = [at for row, _, _ in rows for at in row]
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row, _, _ in rows])
    matrix = csr_matrix((values, (numbers, columns)), shape=(len(rows), size))
    limits = LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows])
    scale = cost.max() or 1.0
    answer = milp(
        cost / scale,
        constraints=limits,
        integrality=np.full(size, int(whole)),
        bounds=Bounds(0, most),
        options={"time_limit": 60, "mip_rel_gap": 1e-6},
    )
    return float(answer.fun * scale) if answer.status == 0 else None


def compare(seeds: range) -> tuple[list[float], list[tuple[float, float]], int]:
    """Return our bytes and our bounds, each over the optimum, and how often a reachable band was missed."""
    ratios, missed, bounds = [], 0, []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        brokers = int(rng.integers(3, 7))
        snapshot = cluster(
            brokers=brokers,
            partitions=int(rng.integers(6, 13)),
            replication_factor=int(rng.integers(1, 4)),
            racks=int(rng.integers(0, 4)),
            disk_bytes=None,
            seed=seed,
        )
        load, request = (loads(snapshot, seed), LOADS) if seed % 2 else (None, SIZES)
        asked = ask(snapshot, load, request)
        best = optimum(asked.problem)
        if best is None:
            continue
        assert least_bytes(asked).least_bytes <= best * (1 + 1e-6) + 1
        plan = propose(snapshot, load, request)
        assert plan.bound_bytes is not None
        assert plan.bound_bytes <= best * (1 + 1e-6) + 1, plan.bound_by
        if best > 1:
            bounds.append((least_bytes(asked).least_bytes / best, plan.bound_bytes / best))
        if out_of_band(asked, after(asked, plan.moves)).sum() > 1e-6:
            missed += 1
        else:
            assert plan.bytes_to_copy >= best * (1 - 1e-6) - 1
            ratios.append(plan.bytes_to_copy / best if best > 1 else 1.0 + (plan.bytes_to_copy > 1))
    return ratios, bounds, missed


def after(asked: Asked, moves: tuple) -> np.ndarray:
    holder, leader = asked.problem.home.copy(), asked.problem.leader.copy()
    number = {name: at for at, name in enumerate(asked.arrays.names)}
    for move in moves:
        first = int(asked.problem.offsets[number[move.partition]])
        holder[first : first + len(move.after)] = [asked.arrays.index[each] for each in move.after]
        leader[number[move.partition]] = first
    return load_of(asked, holder, leader)


def test_plan_is_near_the_optimum_and_the_bound_is_never_above() -> None:
    ratios, bounds, missed = compare(range(40))
    assert len(ratios) >= 10
    alone, together = np.mean(bounds, axis=0)
    assert together > alone + 0.01, "what leaves a broker has to fit elsewhere"
    assert missed == 0
    assert np.mean(ratios) <= 1.03


@pytest.mark.full
def test_plan_is_near_the_optimum_in_many_more_cases() -> None:
    ratios, _, missed = compare(range(1000, 1400))
    assert missed <= len(ratios) // 50
    assert np.mean(ratios) <= 1.03
