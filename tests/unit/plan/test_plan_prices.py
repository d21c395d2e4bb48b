"""Prices, where disks are of different sizes: the bound that they prove, and the plan that they lead to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.plan.goals import most_per_broker
from restow.plan.judge.bound import least_at_prices, least_to_shed
from restow.plan.search import Problem, never, solve
from restow.plan.search.offers import respond
from restow.plan.search.prices import Market
from tests.often import of_many

from test_plan_optimum import optimum  # isort: skip
from test_plan_search import bytes_moved, check_places, loads, skewed  # isort: skip

PER_TOPIC = 20


def uneven(
    brokers: int = 9,
    partitions: int = 400,
    *,
    racks: int = 3,
    replication_factor: int = 3,
    band: float = 0.1,
    power: float = 2.0,
    disks: tuple[float, float] = (0.5, 1.5),
    spread: bool = False,
    seed: int = 1,
) -> Problem:
    """Make up a cluster with a few huge partitions, where every other broker of a rack has a smaller disk."""
    problem = skewed(
        brokers, partitions, racks=racks, replication_factor=replication_factor, band=band, seed=seed
    )
    leading, following = problem.leading.copy(), problem.following.copy()
    leading[:, 0] = following[:, 0] = (leading[:, 0] / 1e9) ** power * 1e9
    disk = np.where(np.arange(brokers) // racks % 2, *disks)
    for rack in range(racks):
        disk[problem.rack == rack] /= disk[problem.rack == rack].mean()
    share = replication_factor * leading[:, 0].sum() / brokers * disk
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[:, 0], upper[:, 0] = share * (1 - band), share * (1 + band)
    made = replace(problem, leading=leading, following=following, lower=lower, upper=upper)
    if not spread:
        return made
    topic = np.arange(partitions) // PER_TOPIC
    size = np.bincount(topic)
    return replace(
        made,
        topic=topic,
        topic_replicas=most_per_broker(replication_factor * size, brokers, 0.5),
        topic_leaders=most_per_broker(size, brokers, 0.5),
    )


def of_topics(problem: Problem, holder: np.ndarray) -> np.ndarray:
    """Return topics × brokers: how many replicas there are."""
    assert problem.topic is not None
    topic = np.repeat(problem.topic, np.diff(problem.offsets))
    table = np.zeros((int(topic.max()) + 1, len(problem.rack)), dtype=np.int64)
    np.add.at(table, (topic, holder), 1)
    return table


def proven(problem: Problem, prices: np.ndarray) -> float:
    alone = least_to_shed(problem, problem.forced)
    return max(alone, least_at_prices(problem, problem.forced, prices))


@pytest.mark.parametrize("spread", [False, True])
def test_plan_by_prices_is_near_the_linear_program_on_unequal_disks(spread: bool) -> None:
    problem = uneven(partitions=240, spread=spread)
    least = optimum(replace(problem, topic=None), whole=False)
    assert least is not None
    solution = solve(problem)
    assert solution.wrong == 0.0
    assert solution.prices is not None, "shedding and filling leads astray here"
    assert 0.98 * least <= proven(problem, solution.prices) <= least * (1 + 1e-6)
    assert bytes_moved(problem, solution) <= 1.02 * least


def test_plan_by_prices_crowds_no_broker_with_a_topic() -> None:
    problem = uneven(spread=True)
    before, after = of_topics(problem, problem.home), of_topics(problem, solve(problem).holder)
    assert problem.topic_replicas is not None
    limit = np.maximum(problem.topic_replicas[:, None], before)
    assert (of_topics(problem, solve(replace(problem, topic_replicas=None)).holder) > limit).any()
    assert (after <= limit).all()


@settings(max_examples=of_many(30, often=6), deadline=None)
@given(
    st.integers(3, 9),
    st.integers(80, 200),
    st.integers(1, 3),
    st.integers(1, 9),
    st.sampled_from([0.02, 0.1, 0.3]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_plan_by_prices_breaks_no_rule(
    brokers: int, partitions: int, replication_factor: int, racks: int, band: float, spread: bool, seed: int
) -> None:
    racks = min(max(racks, replication_factor), brokers)
    problem = uneven(
        brokers,
        partitions,
        racks=racks,
        replication_factor=replication_factor,
        band=band,
        spread=spread,
        seed=seed,
    )
    if seed % 2:
        gone = np.arange(brokers) != seed % brokers
        racks_left = len(np.unique(problem.rack[gone]))
        if racks_left >= replication_factor:
            problem = replace(
                problem, receives=gone, may_lead=gone, forced=~gone[problem.home], movable=gone[problem.home]
            )
    solution = solve(problem)
    assert not solution.homeless.size
    assert problem.receives[solution.holder[solution.holder != problem.home]].all()
    for first, last in zip(problem.offsets[:-1], problem.offsets[1:], strict=True):
        assert len(set(solution.holder[first:last].tolist())) == last - first
    if not problem.forced.any():
        check_places(problem, solution)
    if solution.prices is not None and solution.wrong == 0.0:
        assert proven(problem, solution.prices) <= bytes_moved(problem, solution) * (1 + 1e-9) + 1


def test_arrays_and_loops_respond_alike_to_prices() -> None:
    rng = np.random.default_rng(1)
    plain = uneven(12, 100, racks=4, replication_factor=2)
    drained = replace(plain, receives=np.arange(12) != 3, forced=plain.home == 3)
    own = replace(plain, own=rng.uniform(-0.5, 0.5, len(plain.home)) * 1e9)
    for problem in (plain, drained, own):
        market = Market(problem)
        prices = rng.normal(0.0, 0.5, problem.lower.shape)
        for offers in market.sample(10**9):
            in_arrays = respond(offers, prices, 0.01, few=True)
            assert respond(offers, prices, 0.01, few=False) == pytest.approx(in_arrays, rel=1e-4, abs=1e-4)
            assert in_arrays[:, 1].sum() == pytest.approx(float(len(problem.rack)))


def test_any_prices_prove_less_than_the_optimum() -> None:
    problem = uneven(6, 14, replication_factor=2, band=0.5, power=1.0, disks=(0.8, 1.2))
    least = optimum(problem)
    assert least is not None
    market = Market(problem)
    found = market.in_bytes(market.find(never))
    rng = np.random.default_rng(2)
    for _ in range(50):
        some = found * rng.uniform(0.0, 2.0, found.shape) * (rng.random(found.shape) < 0.8)
        assert least_at_prices(problem, problem.forced, some) <= least * (1 + 1e-6)


def test_plan_by_prices_moves_nothing_when_time_is_up() -> None:
    solution = solve(uneven(), lambda: True)
    assert not solution.finished
    assert bytes_moved(uneven(), solution) == 0.0
    assert loads(uneven(), solution).shape == uneven().lower.shape
