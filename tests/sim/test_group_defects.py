"""Simulated runs find deliberate defects of groups, each within 1,000 seeds."""

from __future__ import annotations

import pytest

from tests.sim.defects import Defect, cases, check_found
from tests.sim.group_defects import GROUPS


@pytest.mark.parametrize("defect", cases(GROUPS))
def test_deliberate_defect_is_found(defect: Defect) -> None:
    check_found(defect)
