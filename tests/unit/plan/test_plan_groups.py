"""Replicas by broker, however many there are, and their shuffled order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from restow.plan.search.compiled import as_if_compiled, by_group
from restow.plan.search.mend import _list, _lists, _strike
from restow.plan.search.shed import _shuffle


@pytest.mark.parametrize("members", [2_000, 30_000])
@pytest.mark.parametrize("many", [1, 255, 256, 257, 65_535, 65_536, 65_537])
def test_by_group_lists_all_members_in_their_order(many: int, members: int) -> None:
    group = np.random.default_rng(many).integers(many, size=members)
    group[:2] = many - 1, 0
    first_of, order = by_group(group, many)
    assert len(first_of) == many + 1
    assert sorted(order.tolist()) == list(range(len(group)))
    for each in {0, many - 1, *group[:50].tolist()}:
        mine = order[first_of[each] : first_of[each + 1]]
        assert mine.tolist() == np.flatnonzero(group == each).tolist()


@pytest.mark.parametrize("many", [*range(1, 200), 1_000, 30_030, 65_536, 99_991, 100_000])
def test_shuffle_keeps_all_and_separates_neighbours(many: int) -> None:
    part_of = np.arange(many)
    weight_of = np.arange(2.0 * many).reshape(many, 2) + 1.0
    space: Any = SimpleNamespace(weight=weight_of, part_of=part_of, own=np.empty(0))
    mine, weight = np.full(many, -1), np.empty((many, 3))
    _shuffle.py_func(space, part_of, mine, weight)  # type: ignore[attr-defined]
    assert sorted(mine.tolist()) == part_of.tolist()
    assert np.allclose(weight[:, :2], space.weight[mine])
    assert np.allclose(weight[:, 2], 1 / np.sqrt((space.weight[mine] ** 2).sum(axis=1)))
    if many > 100:
        assert np.abs(np.diff(mine)).min() > 1


def test_candidates_are_listed_once_at_their_broker_while_its_list_has_room() -> None:
    rng = np.random.default_rng(4)
    brokers, many = 3, 2_000
    at = rng.integers(brokers, size=many)
    state: Any = SimpleNamespace(holder=at.copy())
    task: Any = SimpleNamespace(candidates=np.arange(many))
    with as_if_compiled(few=True):
        lists = _lists(state, task, brokers)
        for candidate in rng.integers(many, size=4_000).tolist():
            _strike(lists, candidate, int(at[candidate]))
            at[candidate] = 0 if candidate % 5 else rng.integers(brokers)
            _list(lists, candidate, int(at[candidate]))
    listed = [lists.listed[lists.first[each] :][: lists.many[each]].tolist() for each in range(brokers)]
    for broker, found in enumerate(listed):
        assert len(set(found)) == len(found)
        assert (at[found] == broker).all()
    left_out = np.flatnonzero(lists.place < 0)
    assert set(left_out.tolist()) == set(range(many)) - {each for found in listed for each in found}
    assert 0 < left_out.size < many / 2
    assert len(listed[0]) == lists.first[1] - lists.first[0]
