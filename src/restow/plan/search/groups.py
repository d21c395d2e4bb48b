"""Which of many belong to each of a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import compiled

if TYPE_CHECKING:
    from restow.plan.search.ground import Ints


def by_group(group: Ints, many: int) -> tuple[Ints, Ints]:
    """Where each of so many groups begins, and the numbers of all, group by group and in their order."""
    begins, order = np.zeros(many + 1, np.int64), np.empty(len(group), np.int64)
    _sort(group, many, begins, order)
    return begins, order


@compiled
def _sort(group: Ints, many: int, begins: Ints, order: Ints) -> None:
    for each in group:
        begins[each + 1] += 1
    for each in range(many):
        begins[each + 1] += begins[each]
    free = begins.copy()
    for number in range(len(group)):
        each = group[number]
        order[free[each]] = number
        free[each] += 1
