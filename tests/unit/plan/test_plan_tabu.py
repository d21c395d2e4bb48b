"""Small clusters: tabu search keeps the rules, reaches the known optimum, and starts without a compiler."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.plan.goals import most_per_broker
from restow.plan.judge.bound import least_to_shed
from restow.plan.search import Problem, Solution, solve
from tests.often import of_many
from tests.unit.plan.test_plan_search import check_places, skewed

ROOT = Path(__file__).parents[3]

_PLAN = """
import sys
import restow
from tests.unit.plan.test_plan_propose import cluster, loads
snapshot = cluster(disk_bytes=None)
plan = restow.plan(snapshot, balance=True, drain=2, load=loads(snapshot))
assert plan.moves
assert "numba" not in sys.modules, "numba was imported"
"""


def copied(problem: Problem, solution: Solution) -> float:
    part_of = np.repeat(np.arange(len(problem.leader)), np.diff(problem.offsets))
    return float(problem.following[part_of[solution.holder != problem.home], 0].sum())


def loaded(problem: Problem, solution: Solution) -> np.ndarray:
    part_of = np.repeat(np.arange(len(problem.leader)), np.diff(problem.offsets))
    carried = problem.following[part_of]
    carried[solution.leader] = problem.leading
    return np.stack(
        [np.bincount(solution.holder, each, minlength=len(problem.rack)) for each in carried.T], axis=1
    )


def test_plan_of_a_small_cluster_imports_no_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PLAN], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_cheaper_of_two_swaps_is_found() -> None:
    """Broker 0 has 6 + 4, broker 1 has 3 + 1: swaps of 6 and 3, and of 4 and 1, leave 7 on each."""
    size = np.array([6.0, 4.0, 3.0, 1.0])
    loads = np.stack([size, np.ones(4)], axis=1)
    problem = Problem(
        rack=np.arange(2),
        offsets=np.arange(5),
        home=np.array([0, 0, 1, 1]),
        leader=np.arange(4),
        leading=loads,
        following=loads,
        lower=np.tile([7.0, 2.0], (2, 1)),
        upper=np.tile([7.0, 2.0], (2, 1)),
        room=np.full(2, np.inf),
        racks_wanted=np.ones(4, dtype=np.int64),
        receives=np.ones(2, dtype=bool),
        may_lead=np.ones(2, dtype=bool),
        forced=np.zeros(4, dtype=bool),
        movable=np.ones(4, dtype=bool),
        may_change_leader=np.ones(4, dtype=bool),
    )
    solution = solve(problem)
    assert solution.wrong == 0
    assert copied(problem, solution) == pytest.approx(5.0)


@settings(deadline=None, max_examples=of_many(200, often=12))
@given(
    st.integers(4, 8),
    st.integers(5, 60),
    st.integers(1, 3),
    st.sampled_from([0.05, 0.2]),
    st.integers(0, 10**6),
)
def test_small_search_keeps_racks_room_topics_and_barred_brokers(
    brokers: int, partitions: int, replication_factor: int, band: float, seed: int
) -> None:
    problem = skewed(
        brokers, partitions, racks=brokers, replication_factor=replication_factor, band=band, seed=seed
    )
    held = np.bincount(
        problem.home, np.repeat(problem.following[:, 0], replication_factor), minlength=brokers
    )
    topic = np.arange(partitions) % 3
    limit = most_per_broker(np.bincount(topic, minlength=3) * replication_factor, brokers) + 1
    receives = np.arange(brokers) != 0
    fixed = np.arange(partitions) % 4 == 0
    problem = replace(
        problem,
        receives=receives,
        room=held + problem.following[:, 0].max(),
        topic=topic,
        topic_replicas=limit,
        topic_leaders=limit,
        movable=~np.repeat(fixed, replication_factor),
    )
    solution = solve(problem)
    check_places(problem, solution)
    after = loaded(problem, solution)
    assert (after[:, 0] <= problem.room * (1 + 1e-9)).all()
    assert not (~receives[solution.holder] & (solution.holder != problem.home)).any()
    assert (solution.holder == problem.home)[np.repeat(fixed, replication_factor)].all()
    for of in range(3):
        part_of = np.repeat(np.arange(partitions), replication_factor)
        mine = topic[part_of] == of
        before = np.bincount(problem.home[mine], minlength=brokers)
        then = np.bincount(solution.holder[mine], minlength=brokers)
        assert (then <= np.maximum(before, limit[of])).all()


def test_dead_broker_in_a_small_cluster_is_replaced_at_hardly_more_than_the_least() -> None:
    problem = skewed(6, 40, racks=6, band=0.02)
    able = np.arange(6) != 2
    shares = 6 / 5 * able[:, None]
    bands = {"lower": np.floor(problem.lower * shares), "upper": np.ceil(problem.upper * 6 / 5)}
    problem = replace(
        problem, **bands, receives=able, may_lead=able, forced=problem.home == 2, movable=problem.home != 2
    )
    solution = solve(problem, enough_bytes=least_to_shed(problem, problem.forced))
    assert solution.wrong == 0
    assert not (solution.holder == 2).any()
    assert copied(problem, solution) <= 1.02 * least_to_shed(problem, problem.forced)
