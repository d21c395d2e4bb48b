"""The time left that a run tells, against the time that it really took, in virtual time.

The cluster here shares what its brokers may send and receive by handing out small pieces in turn. It knows
nothing of the flow model that tells the time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import pytest

from restow.client import BrokerLogDirs, ConfigResource, ReplicaOnDisk, TopicPartitionReplica
from restow.execute.progress.status import RunListener
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import run_options
from restow.execute.run.start import RunContext, execute, resume
from restow.execute.throttle.throttles import DIR_RATE, FOLLOWER_RATE, LEADER_RATE
from restow.model import ANY_DIR, Limits, LogDir, Move, Plan, ReplicaAssignment, TopicPartition
from restow.runtime.disk import SystemDisk
from tests.clock import SleepingClock
from tests.unit.execute.fake_admin import MB, TOTAL, FakeAdmin
from tests.unit.execute.stage import Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from restow.client import BrokerError
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunStatus
    from restow.execute.run.options import RunOptions

PIECE = MB // 50
NEAR_S = 2.5
"""The cluster is looked at every two seconds: what is left is not known better than that."""


@dataclass
class ThrottledAdmin(FakeAdmin):
    """Brokers that send and receive as much as their throttles let through, and no more than `most`."""

    most: float = 20 * MB
    together: float = inf
    """Bytes per second that all of them receive at most, as brokers on one machine do."""
    writes: float = 0.0
    """Bytes per second that producers add to each partition."""
    burst_s: float = 0.0
    """A throttle lets through so many seconds' worth at first, as Kafka's does."""
    piece: int = PIECE
    """Bytes of one fetch."""
    slow_answer_s: float = 0.0
    """How long it takes until the log dirs are described; a broker that does not answer costs that."""
    lies: dict[tuple[TopicPartition, int], str] = field(default_factory=dict)
    futures: dict[tuple[TopicPartition, int], tuple[str, int]] = field(default_factory=dict)
    _budgets: dict[tuple[str, int], float] = field(default_factory=dict)
    _left_together: float = inf

    def tick(self, seconds: float) -> None:
        self._left_together = self.together * max(seconds, 0.001)
        moving = [
            (name, broker)
            for name, each in self.assignments.items()
            for broker in each.adding
            if self.copies[name].get(broker, 0) < self.sizes[name]
        ]
        for key, broker in {(key, b) for key in (LEADER_RATE, FOLLOWER_RATE, DIR_RATE) for b in self.brokers}:
            of = ConfigResource("broker", str(broker))
            rate = min(float(self.set_.get(of, {}).get(key, self.most)), self.most)
            most = rate * max(1.0, self.burst_s)
            begins = most if self.burst_s and key in self.set_.get(of, {}) else 0.0
            saved = self._budgets.get((key, broker), begins)
            self._budgets[key, broker] = min(saved + rate * seconds, most)
        while moving:
            moving = [each for each in moving if self._copy_piece(*each)]
        within = list(self.futures)
        while within:
            within = [each for each in within if self._copy_within(*each)]
        self._end_moves()
        for name in self.sizes:
            self.sizes[name] += int(self.writes * seconds)
            for broker in self.isr_before(name):
                self.copies[name][broker] = self.sizes[name]

    def isr_before(self, name: TopicPartition) -> list[int]:
        """Return the replicas that producers' records reach at once."""
        return [broker for broker in self.copies[name] if broker not in self.assignments[name].adding]

    def _copy_piece(self, name: TopicPartition, broker: int) -> bool:
        leader, here = self.leaders[name], self.copies[name]
        size = min(self.piece, self.sizes[name] - here.get(broker, 0))
        ends = ((LEADER_RATE, leader or 0), (FOLLOWER_RATE, broker))
        if leader not in self.brokers or size <= 0 or any(self._budgets[end] < size for end in ends):
            return False
        if self._left_together < size:
            return False
        self._left_together -= size
        for end in ends:
            self._budgets[end] -= size
        here[broker] = here.get(broker, 0) + size
        return True

    def _copy_within(self, name: TopicPartition, broker: int) -> bool:
        path, has = self.futures[name, broker]
        size = min(PIECE, self.copies[name][broker] - has)
        if self._budgets[DIR_RATE, broker] < size:
            return False
        self._budgets[DIR_RATE, broker] -= size
        self.futures[name, broker] = path, has + size
        if has + size < self.copies[name][broker]:
            return True
        del self.futures[name, broker]
        self.lies[name, broker] = path
        return False

    def _end_moves(self) -> None:
        for name, each in self.assignments.items():
            if each.is_moving and all(self.copies[name].get(b, 0) >= self.sizes[name] for b in each.target):
                self.assignments[name] = ReplicaAssignment(each.target)
                for broker in each.removing:
                    self.copies[name].pop(broker, None)
                if self.leaders[name] not in each.target:
                    self.leaders[name] = each.target[-1]

    async def describe_log_dirs(
        self, brokers: Iterable[int], patience_s: float | None = None
    ) -> Mapping[int, BrokerLogDirs | BrokerError]:
        if self.slow_answer_s:
            await self.clock.sleep(self.slow_answer_s)
        found: dict[int, BrokerLogDirs | BrokerError] = {}
        log_dirs = tuple(
            LogDir(path=path, total_bytes=100 * TOTAL, usable_bytes=99 * TOTAL) for path in ("/d", "/e")
        )
        for broker in brokers:
            replicas = [
                ReplicaOnDisk(
                    partition=name,
                    log_dir=self.lies.get((name, broker), "/d"),
                    size_bytes=here[broker],
                    lag_messages=0,
                    future=False,
                )
                for name, here in self.copies.items()
                if broker in here
            ]
            replicas += [
                ReplicaOnDisk(partition=name, log_dir=path, size_bytes=has, lag_messages=0, future=True)
                for (name, on), (path, has) in self.futures.items()
                if on == broker
            ]
            found[broker] = BrokerLogDirs(log_dirs=log_dirs, replicas=tuple(replicas))
        return found

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        for (name, broker), path in targets.items():
            if self.futures.get((name, broker), ("", 0))[0] != path:  # Kafka ignores a request that repeats
                self.futures[name, broker] = path, 0
        return dict.fromkeys(targets)


class Told(NamedTuple):
    """What a run told at one moment."""

    at_s: float
    status: RunStatus


class Run:
    """A run, or several in turn, and all that they told."""

    def __init__(self, tmp_path: Path, admin: ThrottledAdmin) -> None:
        self.admin, self.told = admin, list[Told]()
        world = RunContext(admin=admin, clock=admin.clock, disk=SystemDisk(), root=str(tmp_path))
        self.stage = Stage(admin, admin.clock, world)
        self._listener = RunListener(
            event=self.stage.watcher.event,
            status=lambda status: self.told.append(Told(admin.clock.now_s, status)),
        )

    def execute(self, plan: Plan, options: RunOptions) -> RunOutcome:
        self.told.clear()
        return asyncio.run(execute(self.stage.world, plan, options, self._listener))

    def resume(self, options: RunOptions) -> None:
        self.told.clear()
        asyncio.run(resume(self.stage.world, options, self._listener))

    def wrong(self, *, after_s: float = 0.0) -> list[tuple[float, float | None, float]]:
        """Return when the run told a wrong time, what it told, and what was really left.

        What it told from a tenth of its time on counts, and from `after_s` on.
        """
        began_s, ended_s = self.told[0].at_s, self.told[-1].at_s
        since_s = began_s + max((ended_s - began_s) / 10, after_s)
        found = [(each.at_s, each.status.report.eta_s, ended_s - each.at_s) for each in self.told]
        counted = [each for each in found if each[0] >= since_s]
        assert counted
        return [
            (round(at_s - began_s, 1), told_s, round(left_s, 1))
            for at_s, told_s, left_s in counted
            if told_s is None or abs(told_s - left_s) > max(0.15 * left_s, NEAR_S)
        ]


def cluster(**more: float) -> ThrottledAdmin:
    return ThrottledAdmin(SleepingClock(), {1, 2, 3, 4, 5, 6}, **more)  # type: ignore[arg-type]


def sized(admin: ThrottledAdmin, sizes_mb: Mapping[int, int]) -> None:
    for number, size in sizes_mb.items():
        name = TopicPartition("t", number)
        admin.sizes[name] = size * MB
        admin.copies[name] = dict.fromkeys(admin.assignments[name].replicas, size * MB)


@pytest.mark.parametrize("burst_s", [0.0, 8.0])
def test_time_left_is_right_with_a_throttle_and_receivers_of_unequal_work(
    tmp_path: Path, burst_s: float
) -> None:
    """Broker 4 receives 486 MB, broker 5 74 MB and broker 6 5 MB, each at 6 MB/s."""
    admin = cluster(burst_s=burst_s)
    admin.add("t", [(1, 2), (2, 3), (3, 1), (1, 2), (2, 3)])
    sized(admin, {0: 243, 1: 243, 2: 37, 3: 37, 4: 5})
    run = Run(tmp_path, admin)
    targets = [(1, 4), (2, 4), (3, 5), (1, 5), (2, 6)]
    run.execute(plan_for(run.stage, targets), run_options(throttle="6MB/s"))
    assert run.wrong() == []


def test_time_left_counts_what_brokers_have_of_waiting_replicas(tmp_path: Path) -> None:
    """Broker 4 was down while it was drained, and kept most of the second replica that it gets back."""
    admin = cluster()
    admin.add("t", [(1, 2), (2, 3)], size=120 * MB)
    admin.copies[TopicPartition("t", 1)][4] = 90 * MB
    run = Run(tmp_path, admin)
    plan = plan_for(run.stage, [(1, 4), (2, 4)], limits=Limits(moves_in=1))
    run.execute(plan, run_options(throttle="3MB/s"))
    assert run.told[0].status.report.eta_s == pytest.approx(150 / 3, rel=0.15)
    assert run.wrong() == []


def test_time_left_is_right_after_a_run_was_resumed(tmp_path: Path) -> None:
    """What was copied before is no rate: 108 MB at 3 MB/s take 36 s."""
    admin = cluster()
    admin.add("t", [(1, 2), (1, 3)], size=120 * MB)
    run = Run(tmp_path, admin)
    options = run_options(throttle="3MB/s")
    run.stage.after(44, lambda: control_of(run.stage).request(ControlRequest(stop="leave")))
    run.execute(plan_for(run.stage, [(1, 4), (1, 4)]), options)
    run.resume(options)
    assert run.told[0].status.report.eta_s == pytest.approx(36, rel=0.15)
    assert run.wrong() == []


@pytest.mark.parametrize("throttle", ["5MB/s", "none"])
def test_time_left_is_right_between_log_dirs(tmp_path: Path, throttle: str) -> None:
    admin = cluster(most=8 * MB)
    admin.add("t", [(1, 2), (1, 3), (2, 1), (3, 2)], size=90 * MB)
    moves = [
        Move(
            partition=name,
            before=each.replicas,
            after=each.replicas,
            size_bytes=90 * MB,
            log_dirs=("/e", ANY_DIR),
            dirs_before={each.replicas[0]: "/d"},
        )
        for name, each in admin.assignments.items()
    ]
    run = Run(tmp_path, admin)
    plan = Plan(cluster_id="fake", created_ms=0, moves=tuple(moves), limits=Limits(moves_in=1))
    run.execute(plan, run_options(throttle=throttle))
    assert run.wrong(after_s=13) == []


def test_time_left_is_right_without_a_throttle_after_two_minutes(tmp_path: Path) -> None:
    admin = cluster(most=4 * MB)
    admin.add("t", [(n % 3 + 1, (n + 1) % 3 + 1) for n in range(24)], size=80 * MB)
    admin.add("small", [(1, 2)] * 20, size=1 * MB)
    sized(admin, {0: 300, 5: 200})
    run = Run(tmp_path, admin)
    targets = [(n % 3 + 1, 4 + n % 2) for n in range(24)]
    run.execute(
        plan_for(run.stage, targets, limits=Limits(moves_in=3, moves_out=3)), run_options(throttle="none")
    )
    assert run.told[0].status.report.eta_s is None, "nothing is known yet"
    assert run.wrong(after_s=120) == []


def test_time_left_counts_what_producers_add(tmp_path: Path) -> None:
    admin = cluster(writes=0.5 * MB)
    admin.add("t", [(1, 2), (2, 3), (3, 1)], size=100 * MB)
    run = Run(tmp_path, admin)
    run.execute(plan_for(run.stage, [(1, 4), (2, 4), (3, 4)]), run_options(throttle="6MB/s"))
    assert run.wrong(after_s=14) == []


def test_time_left_follows_the_throttle_of_later_hours(tmp_path: Path) -> None:
    admin = cluster(most=100 * MB)
    admin.add("t", [(1, 2), (1, 3)], size=180 * MB)
    run = Run(tmp_path, admin)
    minute = datetime.fromtimestamp(admin.clock.now_s + 60).astimezone()
    at = minute.hour * 60 + minute.minute
    hours = "{:02}:{:02}-{:02}:{:02}".format(*divmod(at, 60), *divmod((at + 60) % 1440, 60))
    run.execute(plan_for(run.stage, [(1, 4), (1, 4)]), run_options(throttle=f"2MB/s,{hours}=8MB/s"))
    assert run.wrong() == []


def test_time_left_is_steady_though_fetches_are_large(tmp_path: Path) -> None:
    """At 2 MB/s a fetch of 5 MB arrives every few seconds: a look comes just before one, or just after."""
    admin = cluster(burst_s=8.0, piece=5 * MB)
    admin.add("t", [(1, 2), (2, 3), (3, 1), (1, 2)], size=40 * MB)
    run = Run(tmp_path, admin)
    run.execute(plan_for(run.stage, [(1, 4), (2, 4), (3, 4), (1, 4)]), run_options(throttle="2MB/s"))
    assert run.wrong() == []


def test_time_left_passes_between_two_looks_at_the_cluster(tmp_path: Path) -> None:
    """Steps end and begin more often than log dirs are described; the run tells its state each time."""
    admin = cluster()
    admin.add("t", [(1, 2)] * 30, size=8 * MB)
    run = Run(tmp_path, admin)
    plan = plan_for(run.stage, [(1, 4)] * 30, limits=Limits(moves_in=1))
    run.execute(plan, run_options(throttle="10MB/s"))
    told = [(each.at_s, each.status.report.eta_s) for each in run.told if each.status.report.eta_s]
    assert len({at_s for at_s, _ in told}) > len(told) / 2
    stands = [
        (at_s, eta_s)
        for (at_s, eta_s), (later_s, then_s) in pairwise(told)
        if at_s < later_s and eta_s == then_s
    ]
    assert stands == []


def test_time_left_is_told_again_soon_after_a_broker_died(tmp_path: Path) -> None:
    """Copies stand still until another broker leads, and one look takes six seconds."""
    admin = cluster()
    admin.add("t", [(1, 2)] * 6, size=60 * MB)
    run = Run(tmp_path, admin)

    def dies() -> None:
        admin.brokers.discard(1)
        admin.slow_answer_s = 6.0

    def others_lead() -> None:
        admin.slow_answer_s = 0.0
        for name in admin.assignments:
            admin.leaders[name] = 2

    run.stage.after(20, dies)
    run.stage.after(29, others_lead)
    options = run_options(throttle="4MB/s", max_under_replicated=-1)
    run.execute(plan_for(run.stage, [(2, 4)] * 6), options)
    assert run.wrong(after_s=45) == []
    later = [each.at_s - run.told[0].at_s for each in run.told if each.at_s - run.told[0].at_s > 29]
    assert max(two - one for one, two in pairwise([29.0, *later])) < 20
