"""Find the hour to start in: the one of the next week in which copying costs clients least."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.errors import InvalidInput
from restow.execute.run.options import run_options
from restow.rehearse.answer import CannotRehearse, StartOption
from restow.rehearse.impact import client_impact, impact_by_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.execute.run.options import RunFlags
    from restow.rehearse.rehearsing import RehearsalStage

_HOUR_MS = 3_600_000
_LIKELY = 5
"""So many starts are rehearsed; they are chosen by what the rates of one run would cost at other hours."""


class AskedStart(NamedTuple):
    """What a start is wanted for: the throttle, or the time that a run has if it starts at a moment."""

    throttle: str | None
    has_s: Callable[[int], float | None]
    flags: RunFlags


def best_starts(
    stage_at: Callable[[int], RehearsalStage], now_ms: int, asked: AskedStart
) -> list[StartOption]:
    """Return the starts within a week that were rehearsed and are done in time, the cheapest first."""
    stage = stage_at(now_ms)
    if not stage.loads.by_hour:
        raise InvalidInput(
            "--start auto needs a load model that has the load by hour of the week: give the one that "
            "`restow pipeline run --load DIR` writes with --load, or say when to start"
        )
    throttle = _throttle(stage, now_ms, asked) or "none"
    usual = stage.events(run_options(throttle=throttle, **asked.flags), stage.known.usual).movement
    first_ms = now_ms - now_ms % _HOUR_MS
    found: list[StartOption] = []
    for number in np.argsort(impact_by_start(usual, stage.snapshot), kind="stable"):
        start_ms = max(now_ms, first_ms + int(number) * _HOUR_MS)
        option = _option(stage_at(start_ms), start_ms, asked)
        if option is not None:
            found.append(option)
        if len(found) == _LIKELY:
            break
    if not found:
        options = run_options(throttle=asked.throttle or "none", **asked.flags)
        takes_s = stage.events(options, stage.known.slow).run.seconds
        raise CannotRehearse(
            "no start within the next week is done in time: 9 runs of 10 that start now take up to "
            f"{takes_s:,.0f} s {'at this throttle' if asked.throttle else 'without any throttle'}. Give more "
            "time or a higher throttle, or move less"
        )
    return sorted(found, key=lambda each: (each.impact, each.start_ms))


def _throttle(stage: RehearsalStage, start_ms: int, asked: AskedStart) -> str | None:
    """Return the throttle that was asked for, or the lowest that is done in time; None if there is none."""
    has_s = asked.has_s(start_ms)
    if asked.throttle is not None or has_s is None or has_s <= 0:
        return asked.throttle
    try:
        return stage.lowest_throttle(has_s, asked.flags)
    except CannotRehearse:
        return None


def _option(stage: RehearsalStage, start_ms: int, asked: AskedStart) -> StartOption | None:
    """Return what a start costs; None if no run is done in time from there."""
    throttle, has_s = _throttle(stage, start_ms, asked), asked.has_s(start_ms)
    if throttle is None:
        return None
    options = run_options(throttle=throttle, **asked.flags)
    if has_s is not None and stage.events(options, stage.known.slow).run.seconds > has_s:
        return None
    run = stage.events(options, stage.known.usual)
    if run.run.seconds == inf:
        return None
    impact = client_impact(run.movement, stage.snapshot)
    return StartOption(start_ms=start_ms, throttle=throttle, seconds=run.run.seconds, impact=impact)
