"""Small clusters that HiGHS is asked about: the plan is the optimum, and says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.plan import exactly
from restow.plan.exactly import solve_exactly
from restow.plan.judge import whole
from restow.plan.judge.bound import least_to_shed
from restow.plan.judge.whole import HOW_WHOLE, NEAR, can_be_whole, least_as_whole
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest
from restow.plan.search import Problem, never, solve
from tests.often import of_many

from test_plan_optimum import optimum  # isort: skip
from test_plan_prices import uneven  # isort: skip
from test_plan_propose import cluster  # isort: skip
from test_plan_search import bytes_moved, check_places, loads  # isort: skip


def drained(problem: Problem, broker: int) -> Problem:
    """Return the problem with a broker gone, and its share on the others."""
    live = np.arange(len(problem.rack)) != broker
    more = len(live) / (len(live) - 1)
    return replace(
        problem,
        receives=live,
        may_lead=live,
        forced=problem.home == broker,
        movable=problem.home != broker,
        lower=np.floor(problem.lower * more) * live[:, None],
        upper=np.ceil(problem.upper * more),
    )


@settings(max_examples=of_many(30, often=8), deadline=None)
@given(st.integers(4, 6), st.integers(6, 16), st.integers(1, 3), st.booleans(), st.integers(0, 1000))
def test_integer_program_proves_the_optimum_and_finds_it(
    brokers: int, partitions: int, replication_factor: int, dead: bool, seed: int
) -> None:
    racks = brokers if dead else max(replication_factor, 3)
    problem = uneven(
        brokers,
        partitions,
        racks=racks,
        replication_factor=replication_factor,
        band=0.5,
        power=1.0,
        seed=seed,
    )
    if seed % 3 == 0:
        rng = np.random.default_rng(seed)
        problem = replace(problem, own=rng.uniform(-0.3, 0.3, len(problem.home)) * 1e8)
    if dead:
        problem = drained(problem, seed % brokers)
    assert can_be_whole(problem)
    best, found = optimum(problem), least_as_whole(problem, never)
    if best is None or found is None:
        assert best is None
        assert found is None or not len(found.holder)
        return
    assert best * 0.995 - 1 <= found.least_bytes <= best * (1 + 1e-6) + 1
    solution, least = solve_exactly(problem, least_to_shed(problem, problem.forced))
    assert least <= best * (1 + 1e-6) + 1
    if not dead:
        check_places(problem, solution)
    if solution.wrong == 0.0:
        assert best * (1 - 1e-6) - 1 <= bytes_moved(problem, solution) <= best * NEAR + 1
        table = loads(problem, solution)[:, 1:]
        assert (table >= problem.lower[:, 1:] - 1e-6).all()
        assert (table <= problem.upper[:, 1:] + 1e-6).all()


def test_plan_for_a_small_cluster_says_that_it_is_the_optimum() -> None:
    proven = 0
    for seed in range(6):
        snapshot = cluster(brokers=5, partitions=10, replication_factor=2, disk_bytes=None, seed=seed)
        request = PlanRequest(balance=True, bands={"disk": 0.2})
        plan, best = propose(snapshot, None, request), optimum(ask(snapshot, None, request).problem)
        if plan.bound_by == HOW_WHOLE and best is not None:
            proven += 1
            assert best / NEAR <= plan.bound_bytes <= best * (1 + 1e-6) + 1
            assert best * (1 - 1e-6) - 1 <= plan.bytes_to_copy <= plan.bound_bytes * NEAR
    assert proven, "one of these is not proven by the other bounds"


def test_replicas_and_leaders_that_may_not_change_stay_in_the_program() -> None:
    problem = uneven(5, 24, racks=5, replication_factor=2, band=0.4, power=1.0)
    still = np.zeros(len(problem.leader), dtype=bool)
    still[:6] = True
    slots = np.repeat(still, np.diff(problem.offsets))
    fixed = replace(problem, movable=~slots, may_change_leader=~still)
    found = least_as_whole(fixed, never)
    assert found is not None
    assert len(found.holder)
    assert np.array_equal(found.holder[slots], problem.home[slots])
    assert np.array_equal(found.leader[still], problem.leader[still])
    free = least_as_whole(problem, never)
    assert free is not None
    assert free.least_bytes <= found.least_bytes * (1 + 1e-5) + 1


def test_nothing_is_asked_when_time_is_up_or_highs_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = uneven(5, 12, racks=5, replication_factor=2, band=0.3, power=1.0)
    asked: list[Problem] = []

    def ask(problem: Problem, *_: object, **__: object) -> None:
        asked.append(problem)

    monkeypatch.setattr(exactly, "least_as_whole", ask)
    solution, least = solve_exactly(problem, 0.0, lambda: True)
    assert not solution.finished
    assert least == 0.0
    monkeypatch.setattr(whole, "_SOLVES", False)
    assert not can_be_whole(problem)
    alone, least = solve_exactly(problem, 0.0)
    assert np.array_equal(alone.holder, solve(problem).holder)
    assert least == 0.0
    assert not asked
    monkeypatch.setattr(whole, "_SOLVES", True)
    unproven, least = solve_exactly(problem, 0.0)
    assert asked
    assert least == 0.0
    assert bytes_moved(problem, unproven) <= bytes_moved(problem, alone), "the whole search follows"


def test_placement_to_begin_with_changes_no_proof() -> None:
    problem = uneven(6, 20, racks=3, replication_factor=2, band=0.3, power=1.0)
    begin = solve(problem)
    assert begin.wrong == 0.0
    plain = least_as_whole(problem, never)
    found = least_as_whole(problem, never, start=(begin.holder, begin.leader))
    assert plain is not None
    assert found is not None
    assert found.least_bytes == pytest.approx(plain.least_bytes, rel=NEAR - 1)
    moved = bytes_moved(problem, replace(begin, holder=found.holder, leader=found.leader))
    assert found.least_bytes <= moved <= bytes_moved(problem, begin) * (1 + 1e-6)
    enough = least_as_whole(problem, never, start=(begin.holder, begin.leader), enough_bytes=1e18)
    assert enough is None or enough.least_bytes <= plain.least_bytes * NEAR, "any placement was enough"


def test_solver_stops_when_time_is_up() -> None:
    problem = uneven(6, 40, racks=6, band=0.1, power=1.0, disks=(0.9, 1.1))
    asked: list[bool] = []

    def out_of_time() -> bool:
        asked.append(True)
        return True

    assert least_as_whole(problem, out_of_time) is None
    assert len(asked) == 1


def test_replicas_that_share_a_rack_need_not_be_parted_when_another_has_to_move() -> None:
    problem = uneven(8, 6, racks=4, power=1.0)
    home = problem.home.copy()
    home[:3] = 0, 4, 1
    live = np.arange(8) != 1
    wide = replace(
        problem,
        home=home,
        forced=home == 1,
        movable=home != 1,
        receives=live,
        may_lead=live,
        lower=np.zeros_like(problem.lower),
        upper=problem.upper * 100,
    )
    found = least_as_whole(wide, never)
    assert found is not None
    part_of = np.repeat(np.arange(6), 3)
    assert found.least_bytes == pytest.approx(wide.following[part_of[wide.forced], 0].sum(), rel=1e-5)
    assert found.holder[:2].tolist() == [0, 4]
    assert wide.rack[found.holder[2]] != 0


def test_program_is_not_asked_where_an_excluded_broker_could_keep_what_it_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Problem] = []

    def ask_nobody(problem: Problem, *_: object, **__: object) -> None:
        asked.append(problem)

    monkeypatch.setattr(exactly, "least_as_whole", ask_nobody)
    drain = PlanRequest(drain=frozenset({1}), balance=True, bands={"disk": 0.2})
    for seed in range(6):
        snapshot = cluster(brokers=5, partitions=10, replication_factor=2, disk_bytes=None, seed=seed)
        if not any(each.replicas == (0, 1) for each in snapshot.partitions):
            continue
        before = len(asked)
        propose(snapshot, None, replace(drain, except_brokers=frozenset({0})))
        assert len(asked) == before
        propose(snapshot, None, drain)
    assert asked, "without exclusions it is"
