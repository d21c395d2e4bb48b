"""Two runs at a time, from two state folders and without a mark: no throttle without an owner stays."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigResource
from restow.execute.progress.status import RunListener
from restow.execute.repair.doctor import fix
from restow.execute.run.options import RunOptions
from restow.execute.run.start import execute
from restow.execute.throttle.throttles import LEADER_RATE, LEADER_REPLICAS, ThrottleRates
from restow.model import ReplicaAssignment, TopicPartition
from tests.clock import SleepingClock
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import THROTTLED, Stage, plan_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunEvent
    from restow.execute.run.start import RunContext
    from restow.model import Plan

SENDER = ConfigResource("broker", "1")
SLOWER = RunOptions(throttle=ThrottleRates(rate=1 * MB))


class TakingTurns(SleepingClock):
    """A clock whose sleep lets the other tasks run."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> TakingTurns:
    return TakingTurns()


@pytest.fixture
def shared(stage: Stage, clock: TakingTurns) -> Stage:
    """Give topics `t` and `u` a common leader, but no common partitions."""
    clock.on_tick, stage.admin.clock, stage.clock = stage.clock.on_tick, clock, clock
    stage.world = replace(stage.world, clock=clock)
    stage.admin.add("u", [(1, 4)])
    return stage


def both(stage: Stage, folder: Path, first: Plan, second: Plan) -> tuple[RunOutcome, RunOutcome]:
    """Begin the second run when the first is under way."""
    begun = asyncio.Event()

    def heard(each: RunEvent) -> None:
        if each.kind == "begun":
            begun.set()

    async def later(world: RunContext) -> RunOutcome:
        await begun.wait()
        return await execute(world, second, SLOWER, quiet(lambda _: None))

    async def main() -> tuple[RunOutcome, RunOutcome]:
        other = replace(stage.world, root=str(folder / "elsewhere"))
        return await asyncio.gather(execute(stage.world, first, THROTTLED, quiet(heard)), later(other))

    return asyncio.run(main())


def quiet(heard: Callable[[RunEvent], None]) -> RunListener:
    return RunListener(event=heard, status=lambda _: None)


@pytest.mark.parametrize(("first_mb", "second_mb"), [(50, 2_000), (2_000, 50), (300, 300)])
def test_runs_that_share_a_broker_leave_no_throttle(
    shared: Stage, tmp_path: Path, first_mb: int, second_mb: int
) -> None:
    """Either run may end first."""
    for topic, size in (("t", first_mb), ("u", second_mb)):
        name = TopicPartition(topic, 0)
        shared.admin.sizes[name] = size * MB
        shared.admin.copies[name] = dict.fromkeys(shared.admin.copies[name], size * MB)
    plans = plan_for(shared, [(1, 3)]), plan_for(shared, [(1, 5)], topic="u")
    for outcome in both(shared, tmp_path, *plans):
        assert outcome.is_good, outcome
    assert shared.admin.set_ == {}


def test_permanent_rate_is_restored_after_two_runs(shared: Stage, tmp_path: Path) -> None:
    """The first of the two restores the value from before both."""
    policy = {LEADER_RATE: "99000000"}
    shared.admin.set_[SENDER] = dict(policy)
    assert shared.execute(plan_for(shared, [(1, 3)]), THROTTLED).is_good
    assert shared.admin.set_ == {SENDER: policy}
    # Another tool moves a partition meanwhile without a throttle: the rate is not its own.
    shared.admin.sizes[TopicPartition("u", 0)] = 10_000 * MB
    shared.admin.assignments[TopicPartition("u", 0)] = ReplicaAssignment((1, 4)).reassign_to((1, 5))
    shared.admin.set_[ConfigResource("topic", "u")] = {LEADER_REPLICAS: "*"}
    assert shared.execute(plan_for(shared, [(1, 2)]), THROTTLED).is_good
    assert shared.admin.set_[SENDER] == policy


def test_doctor_does_not_restore_the_rate_of_a_run_that_has_ended(shared: Stage) -> None:
    """The journal of a killed run records that its rate belonged to another run."""
    name = TopicPartition("u", 0)
    shared.admin.sizes[name] = 10_000 * MB
    shared.admin.assignments[name] = ReplicaAssignment((1, 4)).reassign_to((1, 5))
    shared.admin.set_[ConfigResource("topic", "u")] = {LEADER_REPLICAS: "0:1,0:4"}
    shared.admin.set_[SENDER] = {LEADER_RATE: "1000000"}

    class Killed(Exception):
        pass

    def kill() -> None:
        raise Killed

    shared.admin.rate = 5 * MB  # at the requested rate, so that the rate is not corrected
    shared.after(3, kill)
    with pytest.raises(Killed):
        shared.execute(plan_for(shared, [(1, 3)]), THROTTLED)
    assert shared.admin.set_[SENDER] == {LEADER_RATE: "5000000"}
    shared.admin.cancel(name)
    del shared.admin.set_[ConfigResource("topic", "u")]
    asyncio.run(fix(shared.world, shared.watcher))
    assert shared.admin.set_ == {}
