"""A failing run is reduced to the faults that it needs to fail."""

from __future__ import annotations

import pytest

from restow.sim.nemesis import draw_faults
from restow.sim.scenario import Scenario
from restow.sim.shrink import shrink

SCENARIO = Scenario(seed=1, duration_s=60, fault_every_s=3)


@pytest.mark.parametrize("needed", [(), (0,), (3, 4), (1, 7, 13)])
def test_shrink_finds_the_faults_without_which_the_run_passes(needed: tuple[int, ...]) -> None:
    assert len(draw_faults(SCENARIO)) > max(needed, default=0)

    def fails(scenario: Scenario) -> bool:
        return not set(needed) & set(scenario.without_faults)

    assert tuple(each.number for each in shrink(SCENARIO, fails)) == needed
