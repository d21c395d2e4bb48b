"""Wait for Spark, which may take minutes instead of seconds on a busy machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 400
PATIENT = {"request.timeout.ms": "60000"}
"""Timeouts of sources: a busy machine that delays an answer for some seconds must not cause a gap."""
TOO_SLOW = "failed to connect back"
"""Spark gives the process that reads a stream ten seconds to start, and leaves it to others to try again."""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)
