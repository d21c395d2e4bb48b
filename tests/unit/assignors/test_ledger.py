"""The steps below sticky: pouring, the table, its bit sets, leveling, exchanges."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from restow.assignors.compare import balance_score
from restow.assignors.cycles import settle, swap
from restow.assignors.gentle import share_out_gently
from restow.assignors.ledger import BalanceTable
from restow.assignors.leveling import level
from restow.assignors.levels import Levels, bits, lowest
from restow.assignors.water import pour
from tests.unit.assignors.small_groups import same_cases

if TYPE_CHECKING:
    from collections.abc import Iterator


@same_cases
@given(loads=st.lists(st.integers(0, 30), min_size=1, max_size=12), units=st.integers(0, 200))
def test_pour_equals_giving_one_by_one_to_the_least_loaded(loads: list[int], units: int) -> None:
    poured = pour(np.array(loads), units)
    filled = list(loads)
    for _ in range(units):
        filled[filled.index(min(filled))] += 1
    assert sorted(np.array(loads) + poured) == sorted(filled)
    assert poured.sum() == units
    assert (poured >= 0).all()


def test_pour_gives_the_remainder_to_the_first() -> None:
    assert pour(np.array([0, 0, 0, 9]), 5).tolist() == [2, 2, 1, 0]
    assert pour(np.array([3, 1, 2]), 4).tolist() == [1, 2, 1]
    assert pour(np.array([7]), 0).tolist() == [0]


@same_cases
@given(mask=st.integers(1, 2**200))
def test_bits_yields_the_set_bits(mask: int) -> None:
    numbers = list(bits(mask))
    assert numbers == sorted(numbers)
    assert sum(1 << n for n in numbers) == mask
    assert lowest(mask) == numbers[0]
    assert list(bits(0)) == []


@st.composite
def ledgers(
    draw: st.DrawFn, *, kinds: int = 3, members: int = 4, most: int = 3
) -> tuple[BalanceTable, Random]:
    """Draw kinds and members, with every kind allowed to some member, and part of it held."""
    random = Random(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, kinds)), draw(st.integers(1, members))
    allowed = np.array([[random.random() < 0.6 for _ in range(shape[1])] for _ in range(shape[0])])
    for row in allowed:
        row[random.randrange(shape[1])] = True
    supply = np.array([random.randint(0, most) for _ in range(shape[0])])
    owned = np.zeros(shape, dtype=np.int64)
    for kind, units in enumerate(supply.tolist()):
        for _ in range(random.randint(0, units)):
            owned[kind, random.choice(np.flatnonzero(allowed[kind]).tolist())] += 1
    far = np.array([[random.random() < 0.5 for _ in range(shape[1])] for _ in range(shape[0])])
    return BalanceTable(supply, allowed, owned, far if draw(st.booleans()) else None), random


def left(ledger: BalanceTable) -> list[tuple[int, int]]:
    """Return the kinds that are not fully held yet."""
    return list(enumerate((ledger.supply - ledger.held.sum(axis=1)).tolist()))


def spill(ledger: BalanceTable, random: Random) -> None:
    """Give the rest to any members, and move some, so that the table is full and unbalanced."""
    for kind, units in left(ledger):
        takers = np.flatnonzero(ledger.allowed[kind]).tolist()
        for _ in range(units):
            taker = random.choice(takers)
            ledger.held[kind, taker] += 1
            ledger.loads[taker] += 1
    for _ in range(random.randint(0, 4)):
        kind = random.randrange(len(ledger.supply))
        if givers := np.flatnonzero(ledger.held[kind]).tolist():
            takers = np.flatnonzero(ledger.allowed[kind]).tolist()
            ledger.shift(kind, random.choice(givers), random.choice(takers))


def check(ledger: BalanceTable) -> None:
    """Check that everything is held by allowed members, and that the loads are right."""
    assert (ledger.held >= 0).all()
    assert (ledger.held.sum(axis=1) == ledger.supply).all()
    assert (ledger.held[~ledger.allowed] == 0).all()
    assert (ledger.held.sum(axis=0) == ledger.loads).all()


def worth(ledger: BalanceTable) -> tuple[int, int, int]:
    far = 0 if ledger.far is None else int(ledger.held[ledger.far].sum())
    return balance_score(ledger.loads.tolist()), ledger.moved, far


def all_worths(ledger: BalanceTable) -> Iterator[tuple[int, int, int]]:
    """Yield the worth of every way to fill the table."""
    rows = [
        [row for row in product(range(units + 1), repeat=ledger.allowed.shape[1]) if sum(row) == units]
        for units in ledger.supply.tolist()
    ]
    for held in product(*rows):
        table = np.array(held)
        if not table[~ledger.allowed].any():
            other = ledger.copy()
            other.held, other.loads = table, table.sum(axis=0)
            yield worth(other)


def helps(ledger: BalanceTable) -> bool:
    """Return whether some direct move would improve the balance."""
    kinds, members = ledger.allowed.shape
    return any(
        ledger.held[k, a] and ledger.allowed[k, b] and ledger.loads[a] >= ledger.loads[b] + 2
        for k, a, b in product(range(kinds), range(members), range(members))
    )


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9))
def test_share_out_gives_everything_and_takes_nothing(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, _ = drawn
    ledger.share_out(left(ledger))
    check(ledger)
    assert (ledger.held >= ledger.owned).all()
    assert ledger.moved == 0


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9))
def test_level_ends_where_no_direct_move_helps_and_is_never_worse(
    drawn: tuple[BalanceTable, Random],
) -> None:
    ledger, random = drawn
    spill(ledger, random)
    before = worth(ledger)[0]
    level(ledger)
    check(ledger)
    assert not helps(ledger)
    assert worth(ledger)[0] <= before


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9))
def test_gentle_leveling_ends_there_too_and_takes_no_more(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, _ = drawn
    direct = ledger.copy()
    direct.share_out(left(direct))
    level(direct)
    share_out_gently(ledger, left(ledger))
    check(ledger)
    assert not helps(ledger)
    assert ledger.moved <= direct.moved


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9))
def test_settle_never_worsens_and_finds_nothing_the_second_time(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, random = drawn
    spill(ledger, random)
    before = worth(ledger)
    settle(ledger)
    check(ledger)
    after = worth(ledger)
    assert after <= before
    settle(ledger)
    assert worth(ledger) == after


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9))
def test_swap_keeps_all_counts_and_never_worsens(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, random = drawn
    spill(ledger, random)
    before, loads = worth(ledger), ledger.loads.copy()
    swap(ledger)
    check(ledger)
    assert (ledger.loads == loads).all()
    assert worth(ledger) <= before


@same_cases
@given(drawn=ledgers(members=3, most=2))
def test_settle_finds_the_optimum(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, random = drawn
    spill(ledger, random)
    settle(ledger)
    assert worth(ledger) == min(all_worths(ledger))


@same_cases
@given(drawn=ledgers(members=3, most=2))
def test_surely_best_is_right(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, random = drawn
    spill(ledger, random)
    least = min(all_worths(ledger))
    if ledger.surely_best():
        assert worth(ledger) == least
    if ledger.surely_least_moved():
        assert worth(ledger)[:2] == least[:2]


def test_quick_proof_succeeds_after_two_members_left() -> None:
    """Two left a level group of four: their partitions are shared out and nothing else moves."""
    owned = np.array([[3, 3, 0, 0]])
    ledger = BalanceTable(np.array([12]), np.ones((1, 4), dtype=np.bool_), owned, None)
    ledger.share_out([(0, 6)])
    assert ledger.surely_best()
    ledger.shift(0, 0, 2)
    assert not ledger.surely_best()


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9), moves=st.integers(0, 30))
def test_bit_sets_stay_in_step_with_the_table(drawn: tuple[BalanceTable, Random], moves: int) -> None:
    ledger, random = drawn
    spill(ledger, random)
    levels = Levels(ledger)
    for _ in range(moves):
        kind = random.randrange(len(ledger.supply))
        if givers := np.flatnonzero(ledger.held[kind]).tolist():
            giver = random.choice(givers)
            levels.reach(giver)  # so that a stale value could be cached
            levels.move(kind, giver, random.choice(np.flatnonzero(ledger.allowed[kind]).tolist()))
    fresh = Levels(ledger)
    check(ledger)
    for name in ("loads", "holds", "spare", "lost", "at_load", "heights", "takers", "wants"):
        assert getattr(levels, name) == getattr(fresh, name), name
    for member in range(len(ledger.loads)):
        assert levels.reach(member) == fresh.reach(member)


@same_cases
@given(drawn=ledgers(kinds=5, members=7, most=9))
def test_bit_sets_answer_like_the_table(drawn: tuple[BalanceTable, Random]) -> None:
    ledger, random = drawn
    spill(ledger, random)
    levels = Levels(ledger)
    everybody = range(len(ledger.loads))
    for giver in everybody:
        may_take = [m for m in everybody if (ledger.allowed[:, m] & (ledger.held[:, giver] > 0)).any()]
        assert list(bits(levels.reach(giver))) == may_take
        lower = [m for m in may_take if ledger.loads[m] <= ledger.loads[giver] - 2]
        expected = min(lower, key=lambda m: (ledger.loads[m], m), default=None)
        assert levels.least_loaded_taker(giver) == expected
        if expected is not None:
            kind = levels.cheapest_kind(giver, expected)
            assert ledger.held[kind, giver]
            assert ledger.allowed[kind, expected]
    for load in range(-1, 12):
        assert list(bits(levels.members_up_to(load))) == [m for m in everybody if ledger.loads[m] <= load]
