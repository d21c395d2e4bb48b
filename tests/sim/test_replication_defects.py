"""Simulated runs find deliberate defects of replication, each within 1,000 seeds."""

from __future__ import annotations

import pytest

from tests.sim.defects import Defect, cases, check_found
from tests.sim.replication_defects import REPLICATION


@pytest.mark.parametrize("defect", cases(REPLICATION))
def test_deliberate_defect_is_found(defect: Defect) -> None:
    check_found(defect)
