"""Replicas by broker, however many there are, and their shuffled order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from restow.plan.search.compiled import by_group
from restow.plan.search.shed import _shuffle


@pytest.mark.parametrize("many", [1, 255, 256, 257, 65_535, 65_536, 65_537])
def test_by_group_lists_all_members_in_their_order(many: int) -> None:
    group = np.random.default_rng(many).integers(many, size=2_000)
    group[:2] = many - 1, 0
    first_of, members = by_group(group, many)
    assert len(first_of) == many + 1
    assert sorted(members.tolist()) == list(range(len(group)))
    for each in {0, many - 1, *group[:50].tolist()}:
        mine = members[first_of[each] : first_of[each + 1]]
        assert mine.tolist() == np.flatnonzero(group == each).tolist()


@pytest.mark.parametrize("many", [*range(1, 200), 1_000, 30_030, 65_536, 99_991, 100_000])
def test_shuffle_keeps_all_and_separates_neighbours(many: int) -> None:
    part_of = np.arange(many)
    space: Any = SimpleNamespace(weight=np.arange(2.0 * many).reshape(many, 2) + 1.0, part_of=part_of)
    mine, weight = np.full(many, -1), np.empty((many, 3))
    _shuffle.py_func(space, part_of, mine, weight)  # type: ignore[attr-defined]
    assert sorted(mine.tolist()) == part_of.tolist()
    assert np.allclose(weight[:, :2], space.weight[mine])
    assert np.allclose(weight[:, 2], 1 / np.sqrt((space.weight[mine] ** 2).sum(axis=1)))
    if many > 100:
        assert np.abs(np.diff(mine)).min() > 1
