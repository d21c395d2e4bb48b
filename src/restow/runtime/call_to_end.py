"""Cancellation of a task that still has to record how it ended."""

from __future__ import annotations

import asyncio

CalledToEnd = asyncio.CancelledError


def hear_the_call_to_end() -> None:
    """Accept the cancellation, so that this task can go on to record how it ended."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
