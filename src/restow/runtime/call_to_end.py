"""Being called to end in the middle of something that does not answer: a task is cancelled, and still has
to write down how it ended."""

from __future__ import annotations

import asyncio

CalledToEnd = asyncio.CancelledError


def hear_the_call_to_end() -> None:
    """Take note of the call, so that this task can go on to write down how it ended."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
