"""The seed of random cases: fixed, or drawn and printed.

`make test` and CI use no seed: their cases never change, so that a failure comes from a change and not by
chance. `make test-full` draws a new seed each time; `RESTOW_SEED` repeats one.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("RESTOW_SEED") or 0)
AGAIN = f"RESTOW_SEED={SEED} draws them again" if SEED else "the same in every run (RESTOW_SEED draws others)"


def seeded(number: int) -> int:
    """Return the seed of a numbered random case: the number itself, unless `RESTOW_SEED` is set."""
    return SEED * 1_000_003 + number if SEED else number
