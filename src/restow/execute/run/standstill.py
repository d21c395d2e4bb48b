"""Find the moves under way that stand still, so that they hold up neither other moves nor the run's end.

blocked     Its target, its leader or its log dir is gone. It gives up its places in the plan's limits, so
            that others begin; it keeps its room in log dirs. When it can go on, it counts again. Its brokers
            may then have more under way than the limits allow, and get nothing new until that is over. Their
            throttles hold all the time.
still       No byte has come for a while, and nobody knows why. It may go on at any moment, so it keeps its
            places.

When all that is under way stands still and nothing else may begin, the run ends after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.stuck import Stall

if TYPE_CHECKING:
    from restow.execute.progress.observation import Observation
    from restow.execute.progress.progress import RunProgress
    from restow.execute.progress.status import Tell
    from restow.execute.progress.stuck import StepStall
    from restow.execute.run.give_up import WaitReasons
    from restow.execute.run.in_progress import ReassignmentsInProgress
    from restow.model import Step
    from restow.plan.schedule.schedule import Schedule


class Standstill:
    """The moves of one run that stand still, as of the last look at the whole cluster."""

    def __init__(
        self,
        progress: RunProgress,
        schedule: Schedule,
        in_progress: ReassignmentsInProgress,
        holding: WaitReasons,
        tell: Tell,
    ) -> None:
        self._progress, self._schedule, self._holding = progress, schedule, holding
        self._in_progress, self._tell = in_progress, tell
        self._stalls: dict[Step, StepStall] = {}

    def see(self, observation: Observation) -> None:
        """Let others have the places of moves that are blocked, and count those again that go on."""
        steps, admission = self._in_progress.steps, self._schedule.admission
        self._stalls = self._progress.stalls(observation, steps)
        for step in steps:
            stalled, name = self._stalls.get(step), step.partition
            if stalled is not None and stalled.stall is Stall.BLOCKED:
                self._holding.hinder(name)
                if admission.block(step):
                    self._tell("blocked", partition=str(name), why=stalled.replicas[0].evidence)
            else:
                self._holding.unhinder(name)
                if admission.unblock(step):
                    self._tell("no longer blocked", partition=str(name))

    def why_nothing_moves(self) -> str | None:
        """Say why no move is under way that makes progress, if some are left; None if one is."""
        if not self._schedule.left:
            return None
        stalled = [self._stalls.get(step) for step in self._in_progress.steps]
        still = [each for each in stalled if each is not None and (each.stall or 0) >= Stall.STILL]
        if len(still) < len(stalled):
            return None
        if still:
            return str(still[0].replicas[0])
        return self._schedule.why_stuck() or "nothing may begin"
