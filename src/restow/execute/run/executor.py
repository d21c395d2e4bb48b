"""Execute a plan: admit steps, throttle, submit, detect completed steps, and repeat.

Every change is in the journal before it is sent. A problem (a dead broker, a deleted topic, another tool's
change) stops only the partitions it concerns; the others continue.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.client import BrokerError, ClientError, Unreachable
from restow.execute.progress.observation import Observation, look
from restow.execute.progress.outcome import NO_ANSWER_IN_TIME, OFFERS_UNDO, Ending, RunOutcome
from restow.execute.progress.progress import RunProgress, places
from restow.execute.progress.status import RunEvent, RunListener, RunReporter
from restow.execute.repair.undo import cancel_moves, cancelled_before
from restow.execute.run.elections import Elections
from restow.execute.run.foresight import Foreseen
from restow.execute.run.give_up import GiveUpTimer, WaitReasons
from restow.execute.run.in_progress import (
    ReassignmentsInProgress,
    StepState,
    SubmittedStep,
    fulfil_dirs,
    target_log_dirs,
)
from restow.execute.run.other_tools import (
    REFUSED_FOR_GOOD,
    Clearance,
    OtherTools,
    Seen,
    Submitter,
    dir_taken,
    look_at,
)
from restow.execute.run.standstill import Standstill
from restow.execute.run.steps import chains_of, partitions_now
from restow.execute.throttle.pace import Pace
from restow.execute.throttle.throttling import Throttling
from restow.plan.drift import REMADE, remade
from restow.plan.files.text import step_document
from restow.plan.schedule.admission import Admission
from restow.plan.schedule.schedule import Schedule
from restow.runtime.call_to_end import CalledToEnd, hear_the_call_to_end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from restow.client import Admin, TopicPartitionReplica
    from restow.execute.journal.ledger import RunJournal, RunLedger
    from restow.execute.run.control import Control
    from restow.execute.run.lock import Mark
    from restow.execute.run.options import RunOptions
    from restow.model import BrokerId, Partition, Snapshot, Step, TopicPartition
    from restow.runtime.clock import Clock

_LONG_PAUSE_S = 10.0
"""A look takes long when a broker does not answer. The next one must not be a minute away because of that."""


class Executor:
    """One run, from the last entry of its journal to its end."""

    def __init__(
        self,
        admin: Admin,
        clock: Clock,
        book: RunJournal,
        snapshot: Snapshot,
        options: RunOptions,
        control: Control,
        watcher: RunListener,
        mark: Mark,
        why_no_undo: Callable[[RunLedger], Awaitable[str | None]] | None = None,
        foreseen: Foreseen | None = None,
    ) -> None:
        self._admin, self._clock, self._run_journal = admin, clock, book
        self._options, self._watcher, self._mark = options, watcher, mark
        self._why_no_undo = why_no_undo
        plan = book.ledger.plan
        chains = chains_of(plan, snapshot, book.ledger.topic_ids, book.ledger.submitted)
        self._aims = {move.partition: move.after for move in plan.moves}
        self._dirs_before = {move.partition: move.dirs_before for move in plan.moves if move.log_dirs}
        self._admission = Admission(snapshot, plan.limits, self._held)
        self._schedule = Schedule(chains.steps, self._admission)
        self._other_tools, self._submitter = OtherTools(book.ledger.topic_ids), Submitter(admin)
        self._holding = WaitReasons(clock, self._other_tools, special_last=options.special_last)
        self._holding.expect(steps[0].partition for steps in chains.steps)
        self._in_progress = ReassignmentsInProgress(book)
        self._progress = RunProgress(options.stall_s)
        for steps in chains.steps:
            self._progress.expect(steps, places(snapshot, steps[0].partition))
        self._throttling = Throttling(admin, clock, book, options.throttle)
        self.pace = Pace(clock, control, options, self._throttling, self._admission, self.tell)
        self._observation: Observation | None = None
        self._surveyed_s = self._survey_took_s = 0.0
        self._elections = Elections(admin, clock, book, self._aims, options.elections_at_once, self.tell)
        run, tell = book.folder.rpartition("/")[2], watcher.status
        self._reporter = RunReporter(
            run,
            clock,
            self._progress,
            self._schedule,
            self._throttling,
            self.pace,
            self._in_progress,
            tell,
            foreseen or Foreseen(),
        )
        self._strange, self._adopted = chains.strange, chains.in_progress
        self._snapshot = snapshot
        self._patience = GiveUpTimer(clock, options, self.tell)
        standing = self._progress, self._schedule, self._in_progress, self._holding
        self._standstill = Standstill(*standing, self.tell)

    def tell(self, kind: str, **facts: object) -> None:
        """Report an event to the listener."""
        self._watcher.event(RunEvent(at_ms=self._clock.now_ms(), kind=kind, facts=facts))

    async def run(self) -> RunOutcome:
        """Run until everything is done, a stop is requested, or it cannot continue."""
        for partition, reason in self._strange.items():
            self._note_dropped(partition, reason, taken=True)
        moving = {each.partition for each in self._adopted}
        for step in (*self._adopted, *self._run_journal.settle(moving, self._snapshot)):
            self._progress.found_in_progress(step, self._snapshot)
            self._adopt(step, begun=False)
        if self._options.elect:
            over = (name for name in self._aims if name not in self._strange)
            self._elections.line_up([name for name in over if not self._schedule.rest_of(name)])
        try:
            outcome = await self._until_over()
        except BrokerError as error:
            outcome = RunOutcome(ending=Ending.FAILED, reason=str(error))
        except CalledToEnd:
            hear_the_call_to_end()
            outcome = RunOutcome(ending=Ending.LEFT, reason=NO_ANSWER_IN_TIME)
        return await self._end(outcome)

    async def _until_over(self) -> RunOutcome:
        while True:
            began_s = self._clock.monotonic_s()
            try:
                outcome = await self._turn()
                self._patience.answered()
            except (Unreachable, BrokerError) as error:
                if isinstance(error, BrokerError) and not error.code.retriable:
                    raise
                outcome = self._patience.out_of_reach(error, self.pace.stop)
            if outcome is not None:
                return outcome
            took_s = self._clock.monotonic_s() - began_s
            all_ended = all(each.odd_since_s is not None for each in self._in_progress)
            some_wait = all_ended or self._schedule.left > len(self._in_progress)
            await self._clock.sleep(self.pace.until_next_look_s(took_s, some_wait=some_wait))

    async def _turn(self) -> RunOutcome | None:
        self.pace.obey()
        surveyed = await self._survey()
        seen = await self._see_what_arrived()
        if self.pace.stop == "leave":
            reason = "told to leave its moves under way" if self._in_progress else "told to end here"
            return RunOutcome(ending=Ending.LEFT, reason=reason)
        if self.pace.stop == "cancel":
            return await self._cancel()
        if (other := self._mark.lost_to) is not None and not self._in_progress:
            why = f"somebody else carries out a run on this cluster now: {other}"
            return RunOutcome(ending=Ending.FAILED, reason=why)
        begun = [] if self._paused else self._schedule.admit()
        try:
            begun = await self._throttle(begun, self._known.answering, look=surveyed)
            seen_last = await look_at(self._admin, begun, self._dir_movers(begun)) if begun else None
        except ClientError:
            for step in begun:
                self._schedule.put_back(step)
            raise
        if seen_last is not None:
            begun = self._respect_others(begun, seen_last)
        await self._submit(begun)
        await self._elections.hold(seen)
        if surveyed or begun:
            self._report()
        if not self._in_progress and not self._schedule.left and self._elections.over:
            if self._options.elect and self._elections.line_up_again(self._known.partitions):
                return None
            ending = Ending.IN_PART if self._run_journal.ledger.dropped else Ending.DONE
            return RunOutcome(ending=ending)
        return self._patience.stuck(None if self.pace.paused else self._standstill.why_nothing_moves())

    async def _survey(self) -> bool:
        """Look at the whole cluster; the longer a look takes, the longer the pause before the next."""
        began_s = self._clock.monotonic_s()
        took_s = self._survey_took_s
        pause_s = max(self._options.survey_every_s, min(5 * took_s, max(took_s, _LONG_PAUSE_S)))
        if self._observation is not None and began_s - self._surveyed_s < pause_s:
            return False
        if self._observation is None and self.pace.auto:
            self.pace.start(await look(self._admin, self._clock))
            await self._clock.sleep(self._options.survey_every_s)
        self._observation = await look(self._admin, self._clock, self._in_progress.partitions)
        self._surveyed_s = self._clock.monotonic_s()
        self._survey_took_s = self._surveyed_s - began_s
        self.pace.see(self._observation, self._in_progress.steps)
        self._schedule.see(self._observation.partitions)
        self._standstill.see(self._observation)
        self._drop_remade(remade(self._run_journal.ledger.topic_ids, self._observation.topic_ids))
        observation = self._observation
        seen = Seen(
            partitions=observation.partitions, moves=observation.moves, topic_ids=observation.topic_ids
        )
        self._respect_others(self._schedule.waiting, seen)
        return True

    def _respect_others(self, steps: Iterable[Step], seen: Seen) -> list[Step]:
        """Return the steps that may begin; drop, adopt or finish those that another tool has changed."""
        ready, at_s = [], self._clock.monotonic_s()
        for step in steps:
            name, begun = step.partition, self._admission.has_admitted(step)
            rest = self._schedule.rest_of(name)
            submitted = name in self._run_journal.ledger.submitted
            claim, why = self._other_tools.judge(rest, seen, at_s, submitted=submitted)
            if claim is Clearance.READY and seen.disks:
                taken = dir_taken(self._target_log_dirs(step), self._dirs_before.get(name, {}), seen.disks)
                if taken is not None:
                    claim, why = Clearance.TAKEN, taken
            if claim is Clearance.READY:
                ready.append(step)
            elif claim is Clearance.TAKEN:
                self._drop(step, why, taken=True)
            elif claim is Clearance.DOUBTFUL and begun:
                self._schedule.put_back(step)
            elif claim is Clearance.OURS:
                self._adopt(step, begun=begun)
            elif claim is Clearance.THERE:
                self._count_as_done(rest, begun=begun)
        return ready

    def _adopt(self, step: Step, *, begun: bool) -> None:
        if not begun:
            self._schedule.adopt(step)
        known = self._observation is not None
        dirs = self._target_log_dirs(step) if known else {}
        self._in_progress.begin([SubmittedStep(step=step, dirs=dirs)])
        self.tell("found under way", partition=str(step.partition), to=list(step.after))

    def _count_as_done(self, rest: Sequence[Step], *, begun: bool) -> None:
        """Finish all steps of a partition that another tool has moved to the plan's target."""
        name, last = rest[-1].partition, rest[-1].after
        self._run_journal.write("found", partitions=[list(name)])
        self._progress.forget(rest)
        for at, step in enumerate(rest):
            if at or not begun:
                self._schedule.adopt(step)
            self._schedule.finish(step)
        self._reporter.steps_done += len(rest)
        self._holding.settle(name)
        self.tell("found done", partition=str(name), replicas=list(last))

    async def _see_what_arrived(self) -> dict[TopicPartition, Partition]:
        """Finish, retry or drop steps that have ended; return the metadata of the partitions at rest."""
        if not self._in_progress:
            return {}
        for which, error in (await fulfil_dirs(self._admin, self._in_progress)).items():
            where = {"partition": str(which.partition), "broker": which.broker}
            self.tell("log dir refused", **where, why=str(error))
        moves = await self._admin.list_partition_reassignments()
        quiet = {name.topic for name in self._in_progress.partitions if name not in moves}
        now = await partitions_now(self._admin, quiet)
        at_s = self._clock.monotonic_s()
        arrived = []
        for submitted in self._in_progress:
            step, name = submitted.step, submitted.step.partition
            state, why = submitted.judge(moves.get(name), now.get(name), at_s)
            if submitted.seen and name not in moves and not submitted.dirs:
                self._admission.let_go(step)
            if state is StepState.ARRIVED:
                arrived.append(step)
            elif state is StepState.REFUSED:
                self._try_again(step, why)
            elif state is StepState.TAKEN:
                self._drop(step, why, taken=True)
        if arrived:
            self._run_journal.write("finished", steps=[step_document(step) for step in arrived])
        for step in arrived:
            self._finish(step)
        return now

    def _finish(self, step: Step) -> None:
        name = step.partition
        self._schedule.finish(step)
        self._progress.finish(step, self._clock.monotonic_s())
        self._reporter.steps_done += 1
        self.pace.something_changed()
        self.tell("arrived", partition=str(name), replicas=list(step.after))
        if not self._schedule.rest_of(name):
            self._holding.settle(name)
            if self._options.elect:
                self._elections.line_up([name])

    async def _throttle(self, begun: list[Step], brokers: frozenset[BrokerId], *, look: bool) -> list[Step]:
        """Set the throttles for all steps in progress; drop the steps to begin that cannot be throttled."""
        steps = [*self._in_progress.steps, *begun]
        applied = await self._throttling.apply(steps, self._dir_movers(steps), brokers, look=look)
        applied.told(self.tell)
        refused = {step: error for step in begun if (error := applied.refusal(step)) is not None}
        for step, error in refused.items():
            self._drop(step, f"its throttle cannot be set: {error}")
        return [step for step in begun if step not in refused]

    def _dir_movers(self, steps: Iterable[Step]) -> set[BrokerId]:
        return {
            which.broker
            for step in steps
            for which in self._target_log_dirs(step)
            if which.broker in step.before
        }

    def _target_log_dirs(self, step: Step) -> dict[TopicPartitionReplica, str]:
        return target_log_dirs(step, self._known.copies.get(step.partition, {}))

    async def _submit(self, begun: Sequence[Step]) -> None:
        if not begun:
            return
        submitted = [SubmittedStep(step=step, dirs=self._target_log_dirs(step)) for step in begun]
        self._in_progress.begin(submitted)
        self._progress.begin(begun, self._clock.monotonic_s())
        self.pace.something_changed()
        for step in begun:
            self.tell(
                "begun", partition=str(step.partition), **{"from": list(step.before), "to": list(step.after)}
            )
        await fulfil_dirs(self._admin, submitted)
        answers = await self._submitter.submit(begun, self._known.alive)
        for step in begun:
            if (error := answers.get(step.partition)) is not None:
                give_up = error.code in REFUSED_FOR_GOOD
                (self._drop if give_up else self._try_again)(step, str(error))

    def _try_again(self, step: Step, why: str) -> None:
        """Retry a step a few times, with a pause; then drop it."""
        if not self._holding.refuse(step, why):
            self._drop(step, why)
            return
        self._run_journal.write("cancelled", partitions=[list(step.partition)])
        self._schedule.put_back(step)
        self.tell("refused", partition=str(step.partition), why=why)

    def _drop_remade(self, topics: frozenset[str]) -> None:
        for name in self._aims:
            if name.topic in topics and (rest := self._schedule.rest_of(name)):
                self._drop(rest[0], REMADE, taken=True)

    def _drop(self, step: Step, why: str, *, taken: bool = False) -> None:
        rest = self._schedule.rest_of(step.partition)
        self._progress.forget(rest)
        self._schedule.drop(step)
        self._note_dropped(step.partition, why, taken=taken)

    def _note_dropped(self, partition: TopicPartition, why: str, *, taken: bool) -> None:
        self._holding.settle(partition)
        self._run_journal.write("dropped", partition=list(partition), reason=why, taken=taken)
        self.tell("dropped", partition=str(partition), why=why)

    async def _cancel(self) -> RunOutcome:
        self._observation = await look(self._admin, self._clock)
        steps, book = self._in_progress.steps, self._run_journal
        again = cancelled_before(book.ledger, self._schedule.rest_of, self._observation.partitions)
        taken = await cancel_moves(
            self._admin, self._clock, book, [*steps, *again], self._known.alive, self._observation.copies
        )
        for step in steps:
            if step.partition in taken.others:
                self._drop(step, taken.others[step.partition], taken=True)
        return taken.concluded(self.tell)

    async def _end(self, outcome: RunOutcome) -> RunOutcome:
        """Restore the throttles, except those that moves still need, and record the outcome."""
        needed = outcome.ending is Ending.LEFT and self._in_progress
        if outcome.ending is not Ending.LOST and not needed:
            try:
                await self._throttle([], self._known.alive, look=True)
                self._observation = await look(self._admin, self._clock)
                if self._why_no_undo is not None and outcome.ending in OFFERS_UNDO:
                    outcome = replace(outcome, no_undo=await self._why_no_undo(self._run_journal.ledger))
            except (BrokerError, Unreachable) as error:
                self.tell("throttles not brought back", why=str(error))
            except CalledToEnd:
                hear_the_call_to_end()
                self.tell("throttles not brought back", why=NO_ANSWER_IN_TIME)
        how = {"outcome": outcome.ending.value, "reason": outcome.reason}
        self._run_journal.write("ended", **how, **self._reporter.lessons())
        self._report(outcome.ending.value)
        ledger = self._run_journal.ledger
        outcome = outcome.with_rest(
            ledger, self._reporter.summary(ledger, done=outcome.ending is Ending.DONE)
        )
        self.tell("ended", **outcome.document())
        return outcome

    @property
    def _paused(self) -> str | None:
        """Say why nothing new begins. A run that has lost its mark still waits for its moves under way."""
        other = self._mark.lost_to
        return self.pace.paused if other is None else f"the cluster was lost to {other}"

    @property
    def _known(self) -> Observation:
        return self._observation or Observation(at_s=0.0)

    def _held(self, step: Step) -> str | None:
        """Say why a step has to wait now; None if it need not."""
        busy, throttled = not self._admission.idle, self.pace.throttled
        return self._holding.reason(step, self._observation, busy=busy, throttled=throttled)

    def _report(self, ended: str | None = None) -> None:
        if self._observation is not None:
            self._reporter.report(self._observation, self._paused, ended)
