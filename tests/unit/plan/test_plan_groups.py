"""Which replicas belong to which broker, however many brokers there are."""

from __future__ import annotations

import numpy as np
import pytest

from restow.plan.search.groups import by_group


@pytest.mark.parametrize("many", [1, 255, 256, 257, 65_535, 65_536, 65_537])
def test_all_are_listed_group_by_group_in_their_order(many: int) -> None:
    group = np.random.default_rng(many).integers(many, size=2_000)
    group[:2] = many - 1, 0
    first_of, members = by_group(group, many)
    assert len(first_of) == many + 1
    assert sorted(members.tolist()) == list(range(len(group)))
    for each in {0, many - 1, *group[:50].tolist()}:
        mine = members[first_of[each] : first_of[each + 1]]
        assert mine.tolist() == np.flatnonzero(group == each).tolist()
