"""Decide how long a run waits: before a retry, without an answer, with nothing that moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.outcome import Ending, RunOutcome
from restow.plan.schedule.schedule import SPECIAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.client import ClientError
    from restow.execute.progress.observation import Observation
    from restow.execute.progress.status import Tell
    from restow.execute.run.options import RunOptions
    from restow.execute.run.other_tools import OtherTools
    from restow.model import Step, TopicPartition
    from restow.runtime.clock import Clock


class GiveUpTimer:
    """Measures how long the cluster has not answered, and how long nothing could move."""

    def __init__(self, clock: Clock, options: RunOptions, tell: Tell) -> None:
        self._clock, self._options, self._tell = clock, options, tell
        self._lost_since_s: float | None = None
        self._stuck_since_s: float | None = None

    def answered(self) -> None:
        """Note that the cluster has answered."""
        self._lost_since_s = None

    def out_of_reach(self, error: ClientError, stop: str | None) -> RunOutcome | None:
        """Return an outcome if the cluster has been unreachable for too long, or the run is told to leave."""
        now_s = self._clock.monotonic_s()
        if self._lost_since_s is None:
            self._lost_since_s = now_s
            self._tell("out of reach", why=str(error))
        if stop == "leave":
            return RunOutcome(ending=Ending.LEFT, reason=str(error))
        if now_s - self._lost_since_s < self._options.patience_s:
            return None
        return RunOutcome(ending=Ending.LOST, reason=str(error))

    def stuck(self, why: str | None) -> RunOutcome | None:
        """Return an outcome if nothing could move for too long; `why` is None if something can or the run is
        paused.
        """
        if why is None:
            self._stuck_since_s = None
            return None
        now_s = self._clock.monotonic_s()
        if self._stuck_since_s is None:
            self._stuck_since_s = now_s
        if now_s - self._stuck_since_s < self._options.give_up_s:
            return None
        return RunOutcome(ending=Ending.STUCK, reason=why)


_TRIES = 5
_TRY_AGAIN_S = 5.0
_STAYS_S = 15.0
"""A partition that has been kept from moving for so long is no longer waited for."""


class WaitReasons:
    """Holds back steps that were refused, that are in doubt, or whose topic comes last."""

    def __init__(self, clock: Clock, foreign: OtherTools, *, special_last: bool) -> None:
        self._clock, self._other_tools, self._special_last = clock, foreign, special_last
        self._refusals: dict[TopicPartition, tuple[int, float, str]] = {}
        self._ordinary: set[TopicPartition] = set()
        self._hindered_since_s: dict[TopicPartition, float] = {}
        """Ordinary partitions that the cluster keeps from moving, such as those without a leader."""

    def expect(self, partitions: Iterable[TopicPartition]) -> None:
        """Let special topics wait for the others of these partitions."""
        self._ordinary.update(name for name in partitions if name.topic not in SPECIAL_TOPICS)

    def settle(self, partition: TopicPartition) -> None:
        """Let nothing wait for a partition any longer."""
        self._ordinary.discard(partition)
        self.unhinder(partition)

    def hinder(self, partition: TopicPartition) -> None:
        """Note that the cluster keeps an ordinary partition from moving, or from going on."""
        if partition in self._ordinary:
            self._hindered_since_s.setdefault(partition, self._clock.monotonic_s())

    def unhinder(self, partition: TopicPartition) -> None:
        """Note that a partition can move, or go on."""
        self._hindered_since_s.pop(partition, None)

    def refuse(self, step: Step, why: str) -> bool:
        """Hold back a refused step for a while; return False after the last retry."""
        tries = self._refusals.get(step.partition, (0, 0.0, ""))[0] + 1
        self._refusals[step.partition] = tries, self._clock.monotonic_s() + _TRY_AGAIN_S, why
        return tries < _TRIES

    def reason(
        self, step: Step, observation: Observation | None, *, busy: bool, throttled: bool = False
    ) -> str | None:
        """Say why a step waits; `busy` if any step copies, `throttled` if it needs a throttle."""
        name, now_s = step.partition, self._clock.monotonic_s()
        _, until_s, why = self._refusals.get(name, (0, 0.0, ""))
        if now_s < until_s:
            return f"it was refused and is tried again: {why}"
        if (doubt := self._other_tools.doubt(name, now_s)) is not None:
            return doubt
        if name.topic in SPECIAL_TOPICS and self._special_last:
            if not all(
                self._hindered_since_s.get(each, now_s) + _STAYS_S <= now_s for each in self._ordinary
            ):
                return "special topics come last"
            if busy:
                return "special topics go one at a time"
        if observation is None:
            return None
        hindrance = observation.hindrance(step)
        if hindrance is None:
            self.unhinder(name)
            return observation.cannot_throttle(step) if throttled else None
        self.hinder(name)
        return hindrance
