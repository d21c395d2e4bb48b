"""Numbers drawn at random inside compiled loops, a nanosecond each, the same for the same seed."""

from __future__ import annotations

import numpy as np

from restow.plan.search.compiled import compiled

_FACTOR = np.uint64(6364136223846793005)
_TERM = np.uint64(1442695040888963407)
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)


@compiled
def begin(seed: int) -> np.uint64:
    """The state that a row of draws starts from."""
    return step(step(np.uint64(seed) ^ _TERM))


@compiled
def step(state: np.uint64) -> np.uint64:
    """The next state; `pick` reads a number off it."""
    return np.uint64(state * _FACTOR + _TERM)


@compiled
def pick(state: np.uint64, many: int) -> int:
    """One of so many, fewer than 2³², from 0 on: the upper half of the state as a share of them."""
    return np.int64(((state >> _HALF) * (np.uint64(many) & _LOWER)) >> _HALF)  # type: ignore[return-value]
