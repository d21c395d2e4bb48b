"""Where random cases come from: the same in every run, or drawn by a seed that is printed.

`make test` and CI have no seed: their cases never change, so that a failure comes with a change and not by
chance. `make test-full` draws a new one each time; `RESTOW_SEED` repeats it.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("RESTOW_SEED") or 0)
AGAIN = f"RESTOW_SEED={SEED} draws them again" if SEED else "the same in every run (RESTOW_SEED draws others)"


def seeded(number: int) -> int:
    """Return the seed of one of several random cases: the number itself, unless others are asked for."""
    return SEED * 1_000_003 + number if SEED else number
