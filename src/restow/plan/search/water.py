"""Levels, as of water: how far to drain or fill so that a certain amount comes out or goes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.ground import Bools, Floats

_HALVINGS = 50


def drained_to(load: Floats, lower: Floats, upper: Floats, coming: Floats) -> Floats:
    """What each broker keeps: its upper band, or less if those below need more than is above and coming."""
    above = np.maximum(load - upper, 0.0).sum(axis=0)
    below = np.maximum(lower - load, 0.0).sum(axis=0)
    needed = np.maximum(above, below - coming)
    return _level(upper, lower, lambda level: np.maximum(load - level, 0.0).sum(axis=0) < needed)


def filled_to(load: Floats, lower: Floats, upper: Floats, coming: Floats) -> Floats:
    """What each broker should get to: its lower band, or more if more is coming than those below need."""
    return _level(lower, upper, lambda level: np.maximum(level - load, 0.0).sum(axis=0) < coming)


def _level(start: Floats, end: Floats, too_near: Callable[[Floats], Bools]) -> Floats:
    """The first level on the way from start to end that is not too near the start, goal by goal."""
    near, far = np.zeros(start.shape[1]), np.ones(start.shape[1])
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        step_on = too_near(start + (end - start) * middle)
        near, far = np.where(step_on, middle, near), np.where(step_on, far, middle)
    return start + (end - start) * far
