"""Simulated runs find deliberate defects of the controller, each within 1,000 seeds."""

from __future__ import annotations

import pytest

from tests.sim.controller_defects import CONTROLLER
from tests.sim.defects import Defect, cases, check_found


@pytest.mark.parametrize("defect", cases(CONTROLLER))
def test_deliberate_defect_is_found(defect: Defect) -> None:
    check_found(defect)
