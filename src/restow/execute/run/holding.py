"""Say why a step has to wait at the moment, beyond what the plan's limits say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.plan.schedule.schedule import SPECIAL_TOPICS

if TYPE_CHECKING:
    from restow.execute.progress.sight import Sight
    from restow.execute.run.foreign import Foreign
    from restow.model import Step, TopicPartition
    from restow.runtime.clock import Clock

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
