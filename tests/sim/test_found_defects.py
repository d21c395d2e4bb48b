"""Runs that once failed, by the defect that they found. They must pass now."""

from __future__ import annotations

import pytest

from restow.sim.run import Scenario, simulate

FOUND = {
    "a broker obeyed requests for its earlier life before it was registered": Scenario(
        seed=33, workloads=("produce", "reassign", "topics", "configs", "elections")
    ),
}


@pytest.mark.parametrize("scenario", FOUND.values(), ids=FOUND)
def test_run_that_found_a_defect_passes_now(scenario: Scenario) -> None:
    assert simulate(scenario).violations == ()
