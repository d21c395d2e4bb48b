"""Decide how long a run waits: before it tries a step again, without an answer, with nothing to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.outcome import Ending, RunOutcome
from restow.plan.schedule.schedule import SPECIAL_TOPICS

if TYPE_CHECKING:
    from restow.client import ClientError
    from restow.execute.progress.sight import Sight
    from restow.execute.progress.standing import Tell
    from restow.execute.run.foreign import Foreign
    from restow.execute.run.options import RunOptions
    from restow.model import Step, TopicPartition
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


_TRIES = 5
_TRY_AGAIN_S = 5.0


class Holding:
    """Steps that were refused, that are in doubt, or whose topic comes last."""

    def __init__(self, clock: Clock, foreign: Foreign, *, special_last: bool) -> None:
        self._clock, self._foreign, self._special_last = clock, foreign, special_last
        self._refusals: dict[TopicPartition, tuple[int, float, str]] = {}
        self.ordinary: set[TopicPartition] = set()
        """The partitions that special topics wait for."""

    def refuse(self, step: Step, why: str) -> bool:
        """Hold a refused step back for a while; return False if it has been tried often enough."""
        tries = self._refusals.get(step.partition, (0, 0.0, ""))[0] + 1
        self._refusals[step.partition] = tries, self._clock.monotonic_s() + _TRY_AGAIN_S, why
        return tries < _TRIES

    def reason(self, step: Step, sight: Sight | None, *, busy: bool) -> str | None:
        """Say why a step waits; `busy` if something is under way."""
        name, now_s = step.partition, self._clock.monotonic_s()
        _, until_s, why = self._refusals.get(name, (0, 0.0, ""))
        if now_s < until_s:
            return f"it was refused and is tried again: {why}"
        if (doubt := self._foreign.doubt(name, now_s)) is not None:
            return doubt
        if name.topic in SPECIAL_TOPICS and self._special_last:
            if self.ordinary:
                return "special topics come last"
            if busy:
                return "special topics go one at a time"
        return None if sight is None else sight.hindrance(step)
