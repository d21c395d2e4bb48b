"""Reduces a failing run to the fewest faults that still fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.sim.nemesis import DrawnFault, draw_faults
from restow.sim.run import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.sim.scenario import Scenario


def shrink(
    scenario: Scenario,
    fails: Callable[[Scenario], bool] = lambda scenario: bool(simulate(scenario).violations),
) -> tuple[DrawnFault, ...]:
    """Return faults of a failing run without any of which it would pass.

    It leaves out halves first, then quarters, then single faults, as long as the run still fails.
    """
    drawn = draw_faults(scenario)
    needed = [each.number for each in drawn if each.number not in scenario.without_faults]

    def still_fails(kept: list[int]) -> bool:
        without = tuple(each.number for each in drawn if each.number not in kept)
        return fails(replace(scenario, without_faults=without))

    size = len(needed)
    while size and needed:
        at, smaller = 0, False
        while at < len(needed):
            kept = needed[:at] + needed[at + size :]
            if still_fails(kept):
                needed, smaller = kept, True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return tuple(each for each in drawn if each.number in needed)
