"""A cluster of dictionaries for executors, and the events that their listeners received."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.execute.progress.status import RunListener
from restow.execute.run.control import Control
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, execute, resume, undo
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, Move, Plan, TopicPartition
from restow.runtime.disk import SystemDisk
from tests.clock import SleepingClock
from tests.unit.execute.fake_admin import MB, FakeAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunEvent, RunStatus

THROTTLED = RunOptions(throttle=ThrottleRates(rate=5 * MB))


@dataclass
class Stage:
    """A cluster, and the events that its listener received."""

    admin: FakeAdmin
    clock: SleepingClock
    world: RunContext
    events: list[RunEvent] = field(default_factory=list)
    statuses: list[RunStatus] = field(default_factory=list)
    hooks: list[Callable[[RunEvent], None]] = field(default_factory=list)

    @property
    def watcher(self) -> RunListener:
        def event(each: RunEvent) -> None:
            self.events.append(each)
            for hook in self.hooks:
                hook(each)

        return RunListener(event=event, status=self.statuses.append)

    def kinds(self) -> list[str]:
        return [each.kind for each in self.events]

    def execute(self, plan: Plan, options: RunOptions | None = None) -> RunOutcome:
        return asyncio.run(execute(self.world, plan, options or RunOptions(), self.watcher))

    def resume(self, options: RunOptions | None = None) -> RunOutcome:
        return asyncio.run(resume(self.world, options or RunOptions(), self.watcher))

    def undo(self, options: RunOptions | None = None) -> RunOutcome:
        return asyncio.run(undo(self.world, options or RunOptions(), self.watcher))

    def replicas(self, topic: str = "t") -> list[tuple[int, ...]]:
        return [each.replicas for name, each in sorted(self.admin.assignments.items()) if name.topic == topic]

    def after(self, seconds: float, what: Callable[[], object]) -> None:
        at_s = self.clock.now_s + seconds
        done = []

        def tick(_: float) -> None:
            if self.clock.now_s >= at_s and not done:
                done.append(True)
                what()

        self.clock.on_tick.append(tick)


def make_stage(tmp_path: Path) -> Stage:
    clock = SleepingClock()
    admin = FakeAdmin(clock, {1, 2, 3, 4, 5, 6})
    admin.add("t", [(1, 2), (1, 2), (2, 1), (2, 3)])
    return Stage(admin, clock, RunContext(admin=admin, clock=clock, disk=SystemDisk(), root=str(tmp_path)))


def plan_for(
    stage: Stage, targets: Sequence[tuple[int, ...]], topic: str = "t", limits: Limits | None = None
) -> Plan:
    moves = []
    for number, after in enumerate(targets):
        name = TopicPartition(topic, number)
        before = stage.admin.assignments[name].replicas
        if before != after:
            moves.append(Move(partition=name, before=before, after=after, size_bytes=stage.admin.sizes[name]))
    return Plan(cluster_id="fake", created_ms=0, moves=tuple(moves), limits=limits or Limits())


AWAY = [(1, 3), (1, 4), (5, 6), (2, 3)]


def control_of(stage: Stage) -> Control:
    folder = next(str(each.facts["folder"]) for each in stage.events if each.kind == "run")
    return Control(SystemDisk(), folder)
