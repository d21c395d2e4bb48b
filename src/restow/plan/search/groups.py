"""Which of many belong to each of a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from restow.plan.search.ground import Ints


def by_group(group: Ints, many: int) -> tuple[Ints, Ints]:
    """Where each of so many groups begins, and the numbers of all, group by group and in their order.

    Keys are made as short as they can be: numpy sorts those of one or two bytes by counting, in a time that
    grows as they do and no faster.
    """
    order = np.argsort(group.astype(np.min_scalar_type(many)), kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=many))
    return np.concatenate(([0], ends)).astype(np.int64), order
