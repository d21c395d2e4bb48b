"""Plans that are executed, changed, cancelled, killed, resumed and undone, by the real executor.

One tool works on a machine of its own, with its journals on that machine's disk. Whenever it is idle, it
looks at its journals as a person would: a run that is not settled is resumed, undone, cancelled or mended by
the doctor; otherwise a new plan begins, or the last one is undone. After the faults, one more plan is carried
out and undone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from restow.client import ConfigResource, NewTopic
from restow.errors import RestowError
from restow.execute.journal.journal import FILE_NAME, parse_entries
from restow.execute.journal.ledger import NotARun, ledger_of
from restow.execute.journal.runs import Run
from restow.execute.progress.status import RunEvent, RunListener
from restow.execute.repair import doctor
from restow.execute.run import start
from restow.execute.run.control import BadControl, Control, ControlRequest
from restow.execute.run.options import run_options
from restow.execute.throttle.throttles import FOLLOWER_REPLICAS, RATES
from restow.model import TopicPartition
from restow.model.permissions import RUN_GROUP
from restow.sim.admin import connected_admin, run_context
from restow.sim.clock import NodeClock
from restow.sim.disk import SimDisk
from restow.sim.process import SimProcess
from restow.sim.producer import SimProducer
from restow.sim.truth import StoredTruth
from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.plan_checks import (
    RunLimits,
    RunRequests,
    check_end,
    check_newest_first,
    check_undone,
    throttles_of,
)
from restow.sim.workloads.plan_draws import drawn_plan, pick, random_targets
from restow.snapshot import capture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
    from contextlib import AbstractAsyncContextManager

    from restow.client import GroupLockHolder, KafkaAdmin
    from restow.execute.journal.runs import Runs
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.run.options import RunOptions
    from restow.execute.run.start import RunContext
    from restow.model import Plan, Snapshot
    from restow.runtime.chance import Chance

_HOST = "tool"
_TOPIC = "parcels"
_PARTITIONS, _RECORDS, _RECORD_BYTES = 6, 10, 50_000
_THROTTLES = ("none", "20kB/s", "200kB/s", "5MB/s", "auto")
_EARLIER_RATE = 3_000_000
_LONGEST_PAUSE_S = 6
_SETTLE_EVERY_S = 0.5
_MARK_GONE_S = 60.0


class Planning(Workload):
    """One operator with the real tool."""

    name = "plans"

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("plans")
        self._clock = NodeClock()
        self._disk = SimDisk(context.chance("disk of the tool"))
        self._truth = StoredTruth(context.cluster.store.tree)
        self._limits = RunLimits(context.cluster)
        self._requests = RunRequests(self._truth, self._open_run)
        self._process = SimProcess(_HOST, context.cluster.network, self._disk)
        self._task: asyncio.Task[None] | None = None
        self._runs: Runs | None = None
        self._throttles = throttles_of(self._truth)
        self._broken: list[str] = []
        self._dead: list[asyncio.Task[None]] = []
        self._settled: set[tuple[int, str]] = set()
        self._undoes_all = False
        self._undos: dict[str, bool] = {}
        """The undos by name, and whether each was to bring back all or only what is possible."""
        self._read: dict[str, _KnownJournal] = {}
        self._count = 0

    async def start(self) -> None:
        async with self._connected() as admin:
            self._runs = await self._world(admin).runs()
            await admin.create_topics([NewTopic(name=_TOPIC, partitions=_PARTITIONS, replication_factor=3)])
            await self._set_throttles(admin)
        self._throttles = throttles_of(self._truth)
        await self._fill()

    async def _set_throttles(self, admin: KafkaAdmin) -> None:
        """Set, in half of the runs, throttles of somebody else, which must be there again after each run."""
        if self._chance.randrange(2):
            broker = str(self._chance.randrange(len(self.context.cluster.nodes)))
            await admin.incremental_alter_configs(
                {
                    ConfigResource("broker", broker): dict.fromkeys(RATES, str(_EARLIER_RATE)),
                    ConfigResource("topic", _TOPIC): {FOLLOWER_REPLICAS: f"0:{broker},1:{broker}"},
                }
            )

    async def _fill(self) -> None:
        """Write enough for a move to last a while under a throttle."""
        client = self.context.client("filler")
        producer = SimProducer(client, self.context.cluster.nodes, _TOPIC)
        for number in range(_PARTITIONS * _RECORDS):
            producer.put(number % _PARTITIONS, bytes(_RECORD_BYTES))
        while not producer.is_idle:
            await producer.round()
            await asyncio.sleep(_SETTLE_EVERY_S)
        client.close()

    async def run(self, until_s: float) -> None:
        while self.context.now_s() < until_s:
            if self._task is None:
                self._begin_something()
            await asyncio.sleep(self._chance.randrange(_LONGEST_PAUSE_S * 1000) / 1000)
            if self._task is not None and self._task.done():
                self._end()
            elif self._task is not None:
                self._meddle()

    async def settle(self) -> None:
        """Bring the last run to its end, whatever that is; then execute one more and undo it."""
        await self._settle_runs()
        for action in (self._move_some, self._undo):
            self._begin(action)
            await self._settle_runs()

    async def _settle_runs(self) -> None:
        asked = None
        while self._task is not None or self._open_run() is not None:
            if self._task is None:
                self._begin(pick(self._chance, (self._resume, self._undo, self._cancel, self._fix)))
            elif self._task.done():
                self._end()
            elif asked is not self._process and self._open_run() is not None:
                self._ask(ControlRequest(throttle="none", paused=False))
                asked = self._process
            await asyncio.sleep(_SETTLE_EVERY_S)

    def check(self) -> Iterable[str]:
        yield from self._limits.check()
        yield from self._requests.broken
        yield from self._broken

    async def finish(self) -> AsyncIterator[str]:
        now = throttles_of(self._truth)
        if now != self._throttles:
            yield f"the throttles were {self._throttles} before all runs, and are {now} after them"
        holder = await self._mark_left()
        if holder is not None:
            yield f"the group of the run's mark still has the member {holder}"

    async def _mark_left(self) -> GroupLockHolder | None:
        """Return the member that still marks a run, once the session of a killed one is over."""
        until_s = self.context.now_s() + _MARK_GONE_S
        self._process = SimProcess(_HOST, self.context.cluster.network, self._disk)
        async with self._connected() as admin:
            lock = admin.group_lock(RUN_GROUP, "check", b"")
            while (holder := await lock.holder()) is not None and self.context.now_s() < until_s:
                await asyncio.sleep(1.0)
        return holder

    # Beginning

    def _begin_something(self) -> None:
        if self._open_run() is not None:
            actions = (self._resume, self._resume, self._undo, self._cancel, self._fix)
        else:
            actions = (self._execute, self._execute, self._execute, self._undo, self._resume)
        self._begin(pick(self._chance, actions))

    def _begin(self, action: Callable[[RunContext], Awaitable[RunOutcome | None]]) -> None:
        self._process = SimProcess(_HOST, self.context.cluster.network, self._disk)
        self._requests = RunRequests(self._truth, self._open_run)
        self._task = self._process.start(self._act(action))

    async def _act(self, action: Callable[[RunContext], Awaitable[RunOutcome | None]]) -> None:
        """Do it as a command of the tool would: with a connection of its own, which ends with it."""
        self._count += 1
        name = action.__name__.strip("_")
        try:
            async with self._connected() as admin:
                outcome = await action(self._world(admin))
        except RestowError as error:
            self.context.note(f"{name} was refused: {error}")
            return
        if outcome is not None:
            self.context.note(f"{name} of run {outcome.run}: {outcome.ending.value} ({outcome.reason})")

    def _connected(self) -> AbstractAsyncContextManager[KafkaAdmin]:
        cluster = self.context.cluster
        sent = self._requests.sent
        return connected_admin(self._process, cluster.network, self._clock, cluster.nodes, sent)

    def _world(self, admin: KafkaAdmin) -> RunContext:
        chance = self.context.chance(f"executor {self._count}")
        return run_context(self._process, admin, self._clock, self._disk, chance)

    async def _execute(self, world: RunContext) -> RunOutcome | None:
        return await self._carry_out(world, drawn_plan)

    async def _move_some(self, world: RunContext) -> RunOutcome | None:
        return await self._carry_out(world, random_targets)

    async def _carry_out(
        self, world: RunContext, draw: Callable[[Snapshot, Chance], Plan]
    ) -> RunOutcome | None:
        plan = draw(await capture(world.admin, world.clock), self._chance)
        if not plan.moves:
            return None
        self.context.note(f"a plan of {len(plan.moves)} moves: {plan.title}; {plan.limits}")
        return await start.execute(world, plan, self._options(), self._listener)

    async def _resume(self, world: RunContext) -> RunOutcome | None:
        return await start.resume(world, self._options(), self._listener)

    async def _undo(self, world: RunContext) -> RunOutcome | None:
        self._undoes_all = not self._chance.randrange(2)
        return await start.undo(
            world, self._options(), self._listener, as_far_as_possible=not self._undoes_all
        )

    async def _cancel(self, world: RunContext) -> RunOutcome | None:
        return await start.cancel(world, self._listener)

    async def _fix(self, world: RunContext) -> RunOutcome | None:
        await doctor.fix(world, self._listener)
        return None

    def _options(self) -> RunOptions:
        return run_options(
            throttle=pick(self._chance, _THROTTLES),
            max_under_replicated=pick(self._chance, (-1, 0)),
            special_last=bool(self._chance.randrange(2)),
            elect=bool(self._chance.randrange(2)),
            give_up_after=20.0,
        )

    @property
    def _listener(self) -> RunListener:
        return RunListener(event=self._hear, status=lambda _: None)

    def _hear(self, event: RunEvent) -> None:
        self._process.check_alive()
        if event.kind == "run":
            run = self._get_runs().get(str(event.facts["folder"]).rpartition("/")[2])
            self._limits.begin(run.ledger.plan)
            if run.ledger.undo_of is not None and run.name not in self._undos:
                self._undos[run.name] = self._undoes_all
                undone = self._get_runs().get(run.ledger.undo_of).ledger
                self._broken.extend(check_newest_first(run.ledger.plan, undone))
        if event.kind == "blocked":
            self._limits.excuse(TopicPartition.parse(str(event.facts["partition"])))
        facts = ", ".join(f"{key} {value}" for key, value in event.facts.items() if key != "summary")
        self.context.note(f"tool: {event.kind} {facts}")

    # Meddling with a run in progress

    def _meddle(self) -> None:
        kind = self._chance.randrange(9)
        if kind == 0:
            self._ask(ControlRequest(paused=bool(self._chance.randrange(2))))
        elif kind == 1:
            self._ask(ControlRequest(throttle=pick(self._chance, _THROTTLES)))
        elif kind == 2:
            moves_in, moves_out = 1 + self._chance.randrange(4), 1 + self._chance.randrange(4)
            self._limits.allow(moves_in, moves_out)
            self._ask(ControlRequest(moves_in=moves_in, moves_out=moves_out))
        elif kind == 3:
            self._ask(ControlRequest(stop=pick(self._chance, ("cancel", "leave"))))
        elif kind == 4:
            self.context.note("the tool is killed")
            self._process.kill()
            self._let_go()
        elif kind == 5:
            self.context.note("the tool's machine loses power")
            self._process.lose_power()
            self._let_go()

    def _ask(self, request: ControlRequest) -> None:
        run = self._open_run()
        if run is not None:
            self.context.note(f"the run is asked: {request}")
            control = Control(self._disk, run.folder)
            try:
                control.request(request)
            except BadControl as error:  # a power loss has torn the file, and the message says to remove it
                self.context.note(f"the run cannot be asked: {error}")
                control.clear()

    # Ends

    def _end(self) -> None:
        """See how the command ended, and check what it has left."""
        task, self._task = self._task, None
        if task is not None and not task.cancelled() and (error := task.exception()) is not None:
            self._broken.append(f"the tool failed: {error!r}")
        self._check_settled()

    def _let_go(self) -> None:
        """Forget a killed process; what it still tries has no effect."""
        if self._task is not None:
            self._dead.append(self._task)
        self._task = None
        self._check_settled()

    def _check_settled(self) -> None:
        """Check the last of the runs that have been settled since the last time, unless another has begun."""
        runs = self._journals()
        fresh = [run for run in runs if run.ledger.is_settled and run.age not in self._settled]
        self._settled.update(run.age for run in fresh)
        if fresh and fresh[-1].age == max(run.age for run in runs):
            later = (run.ledger.submitted for run in runs if run.name > fresh[-1].name)
            self._broken.extend(check_end(self._truth, fresh[-1].ledger, frozenset().union(*later)))
            self._broken.extend(self._check_undone(fresh[-1]))
            if self._open_run() is None and (now := throttles_of(self._truth)) != self._throttles:
                self._broken.append(
                    f"run {fresh[-1].name} found the throttles {self._throttles} and left {now}"
                )

    def _check_undone(self, run: Run) -> Iterator[str]:
        undo = run.ledger
        if undo.undo_of is not None and undo.outcome == "done" and not undo.dropped:
            undone = self._get_runs().get(undo.undo_of).ledger
            yield from check_undone(self._truth, undo, undone, whole=self._undos.get(run.name, False))

    def _get_runs(self) -> Runs:
        if self._runs is None:
            raise RuntimeError("the workload has not been started")
        return self._runs

    def _open_run(self) -> Run | None:
        """Return the last run that is not settled."""
        open_runs = [run for run in self._journals() if not run.ledger.is_settled]
        return open_runs[-1] if open_runs else None

    def _journals(self) -> list[Run]:
        """Return all runs, oldest first; read only the journals that have changed."""
        runs = self._get_runs()
        for name in runs.names():
            path = f"{runs.path(name)}/{FILE_NAME}"
            known = self._read.get(name)
            if known is None or known.size != self._disk.open(path).size:
                with suppress(NotARun):
                    self._read[name] = _read_on(known, self._disk.read_bytes(path), name, runs.path(name))
        return sorted((known.run for known in self._read.values()), key=lambda run: run.age)


class _KnownJournal(NamedTuple):
    """A journal as it was read last."""

    run: Run
    size: int
    sound: bytes
    entries: int


def _read_on(known: _KnownJournal | None, data: bytes, name: str, folder: str) -> _KnownJournal:
    """Read what a journal has more than it had. It is read after every request, and only grows, as a rule."""
    if known is None or not data.startswith(known.sound):
        entries, sound = parse_entries(data, folder)
        return _KnownJournal(
            Run(name, folder, ledger_of(entries, folder)), len(data), data[:sound], len(entries)
        )
    entries, sound = parse_entries(data[len(known.sound) :], folder, known.entries)
    ledger = known.run.ledger
    for entry in entries:
        ledger = ledger.after(entry)
    return _KnownJournal(
        Run(name, folder, ledger),
        len(data),
        data[: len(known.sound) + sound],
        known.entries + len(entries),
    )
