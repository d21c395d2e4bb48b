"""Decide when a run gives up: nobody answers, or nothing may begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.outcome import Ending, RunOutcome

if TYPE_CHECKING:
    from restow.client import ClientError
    from restow.execute.progress.standing import Tell
    from restow.execute.run.options import RunOptions
    from restow.runtime.clock import Clock


class Patience:
    """How long a run has been without an answer, and how long without anything to do."""

    def __init__(self, clock: Clock, options: RunOptions, tell: Tell) -> None:
        self._clock, self._options, self._tell = clock, options, tell
        self._lost_since_s: float | None = None
        self._stuck_since_s: float | None = None

    def answered(self) -> None:
        """Take note that the cluster can be reached."""
        self._lost_since_s = None

    def out_of_reach(self, error: ClientError, stop: str | None) -> RunOutcome | None:
        """Return an outcome when nobody has answered for too long, or somebody wants to leave it at that."""
        now_s = self._clock.monotonic_s()
        if self._lost_since_s is None:
            self._lost_since_s = now_s
            self._tell("out of reach", why=str(error))
        if stop == "leave":
            return RunOutcome(ending=Ending.LEFT, reason=str(error))
        if now_s - self._lost_since_s < self._options.patience_s:
            return None
        return RunOutcome(ending=Ending.LOST, reason=str(error))

    def stuck(self, why: str | None, *, idle: bool) -> RunOutcome | None:
        """Return an outcome when nothing has been under way for too long, although nobody has paused it."""
        if not idle:
            self._stuck_since_s = None
            return None
        now_s = self._clock.monotonic_s()
        if self._stuck_since_s is None:
            self._stuck_since_s = now_s
        if now_s - self._stuck_since_s < self._options.give_up_s:
            return None
        return RunOutcome(ending=Ending.STUCK, reason=why or "nothing may begin")
