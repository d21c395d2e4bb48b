"""Undo a run: cancel its moves under way, and plan the moves back of those that have arrived."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from restow.client import BrokerError, TopicPartitionReplica
from restow.errors import RestowError
from restow.execute.journal.ledger import has_extra_logs
from restow.execute.progress.outcome import Ending, RunOutcome
from restow.execute.run.other_tools import Submitter
from restow.execute.run.steps import partitions_now
from restow.model import ANY_DIR, Plan, ReplicaAssignment, Step
from restow.plan.drift import REMADE, ids_of, remade
from restow.plan.files.text import step_document
from restow.plan.pin import pinned_move, topic_ids
from restow.plan.schedule.schedule import steps_of, waves_of
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from restow.client import Admin, PartitionReassignment
    from restow.execute.journal.ledger import RunJournal, RunLedger
    from restow.execute.journal.runs import Run
    from restow.execute.progress.status import Tell
    from restow.model import BrokerId, Copy, Move, Partition, Snapshot, TopicPartition
    from restow.runtime.clock import Clock


class CannotUndo(RestowError):
    """The changes of a run cannot be undone now. Nothing was changed."""


def inverse(run: Run, snapshot: Snapshot, *, as_far_as_possible: bool = False) -> Plan:
    """Return the moves from the present replicas to those before the run.

    Partitions that the run has not touched are left alone, and so are those that other tools have moved
    since. Moves to a broker that is gone are refused.
    """
    plan = run.ledger.plan
    arrived = {step.partition: turn for turn, step in enumerate(run.ledger.finished)}
    moves: list[Move] = []
    problems: list[str] = []
    gone = _gone_before(plan)
    strangers = remade(run.ledger.topic_ids, ids_of(snapshot))
    changed = [m for m in plan.moves if m.partition in run.ledger.submitted - run.ledger.found]
    for move in sorted(changed, key=lambda each: -arrived.get(each.partition, -1)):
        now, step = snapshot.partition(move.partition), run.ledger.in_progress.get(move.partition)
        if now is not None and now.moving and step is not None:
            if why := _why_not_cancelled(step, snapshot.broker, gone):
                problems.append(f"{move.partition} cannot be taken back: {why}")
                continue
            now = _at_rest(now, step)
        if now is None:
            problems.append(f"{move.partition} does not exist any more")
            continue
        if move.partition.topic in strangers:
            problems.append(f"{move.partition}: {REMADE}")
            continue
        back = _back(move, now)
        if back is None:
            continue
        problem = _problem(move, now, snapshot, plan.limits.extra_copies)
        if problem is None:
            moves.append(back)
        else:
            problems.append(problem)
    if problems and not (as_far_as_possible and moves):
        rest = "With --as-far-as-possible the others are brought back"
        nothing = "There is nothing else to bring back"
        told = f"{'; '.join(problems[:5])}{'; …' if len(problems) > 5 else ''}"
        raise CannotUndo(f"{told}. {rest if moves else nothing}")
    return Plan(
        cluster_id=plan.cluster_id,
        created_ms=snapshot.taken_ms,
        moves=tuple(moves),
        waves=waves_of(moves, snapshot, plan.limits),
        limits=plan.limits,
        title=f"undo {run.name}",
        topic_ids=topic_ids(snapshot, moves),
    )


def _at_rest(now: Partition, in_progress: Step) -> Partition:
    """Return the partition as it will be once our own move of it is cancelled, which `undo` does first."""
    moving = ReplicaAssignment(now.replicas, now.adding, now.removing)
    ours = moving.target == in_progress.after and set(moving.origin) == set(in_progress.before)
    return now._replace(replicas=in_progress.before, adding=(), removing=()) if ours else now


def _back(move: Move, now: Partition) -> Move | None:
    """Return the move back; None if the partition is already there."""
    dirs: tuple[str, ...] = ()
    if move.log_dirs:
        dirs = tuple(move.dirs_before.get(broker, ANY_DIR) for broker in move.before)
    back = pinned_move(move.partition, now, after=move.before, log_dirs=dirs, reason="undo")
    if back is None or back.size_bytes:
        return back
    return replace(back, size_bytes=move.size_bytes)


def _problem(move: Move, now: Partition, snapshot: Snapshot, extra_copies: int) -> str | None:
    ours = {move.before, *(step.after for step in steps_of(move, extra_copies))}
    if now.moving:
        return f"{move.partition} is being moved by somebody else"
    if now.replicas not in ours and set(now.replicas) != set(move.before):
        return f"{move.partition} was moved on to {list(now.replicas)} by somebody else"
    if now.leader is None:
        return f"{move.partition} has no leader to copy from"
    for broker in move.before:
        if broker not in snapshot.broker:
            return f"{move.partition} was on broker {broker}, which is not there"
    return None


_WAIT_S = 60.0
_GRACE_S = 5.0
"""How long a broker's metadata may lag behind the controller."""
_LOOK_EVERY_S = 0.2


@dataclass(slots=True, kw_only=True)
class Taken:
    """The result of a cancellation."""

    back: list[TopicPartition] = field(default_factory=list)
    arrived: list[TopicPartition] = field(default_factory=list)
    """Moves that had completed before they could be cancelled."""
    refused: dict[TopicPartition, str] = field(default_factory=dict)
    others: dict[TopicPartition, str] = field(default_factory=dict)
    """Moves that another tool has redirected since, or whose topic is gone; they are left alone."""

    def concluded(self, tell: Tell) -> RunOutcome:
        """Report every move, and return the outcome of the run."""
        for name, why in self.refused.items():
            tell("not cancelled", partition=str(name), why=why)
        for name in self.back:
            tell("cancelled", partition=str(name))
        if self.refused:
            moves = count(len(self.refused), "move")
            why = f"{moves} could not be taken back: {next(iter(self.refused.values()))}"
            return RunOutcome(ending=Ending.LEFT, reason=why)
        were = "was" if len(self.back) == 1 else "were"
        reason = f"{count(len(self.back), 'move')} {were} taken back"
        return RunOutcome(ending=Ending.CANCELLED, reason=reason)


def cancelled_before(
    ledger: RunLedger,
    rest_of: Callable[[TopicPartition], Sequence[Step]],
    now: Mapping[TopicPartition, Partition],
) -> list[Step]:
    """Return steps that were cancelled earlier, perhaps before the run was killed, and may be in disorder.

    Kafka leaves the replicas in the order of the cancelled target. Of a step that only changes the order, old
    metadata may hide that it has arrived.
    """
    origin = {move.partition: move.before for move in ledger.plan.moves}
    origin |= {step.partition: step.after for step in ledger.finished}
    names = ledger.submitted - ledger.in_progress.keys() - ledger.found - ledger.dropped.keys()
    found = []
    for name in sorted(names & now.keys()):
        for rest in rest_of(name)[:1]:
            step = replace(rest, before=origin[name])
            if now[name].replicas != step.before or set(step.before) == set(step.after):
                found.append(step)
    return found


async def cancel_moves(
    admin: Admin,
    clock: Clock,
    book: RunJournal,
    steps: Sequence[Step],
    alive: frozenset[BrokerId],
    copies: Mapping[TopicPartition, Mapping[BrokerId, Copy]],
) -> Taken:
    """Cancel these steps. A step that has lost an original replica since it began is left to complete.

    Only a move to the step's own target is cancelled: any other belongs to another tool. `copies` are the
    logs on the brokers: if they contradict the metadata of a step that was over before, it stays in doubt.
    """
    taken = Taken()
    able = {}
    gone = _gone_before(book.ledger.plan)
    moving = await admin.list_partition_reassignments([step.partition for step in steps]) if steps else {}
    for step in steps:
        move = moving.get(step.partition)
        target = None if move is None else ReplicaAssignment(move.replicas, move.adding, move.removing).target
        if target is not None and target != step.after:
            taken.others[step.partition] = f"somebody else is moving it to {list(target)}"
            continue
        if why := _why_not_cancelled(step, alive, gone):
            taken.refused[step.partition] = why
        else:
            able[step.partition] = step
    if not able:
        return taken
    book.write("cancel", partitions=[list(name) for name in able])
    confirmed = await _cancel(admin, {name: moving[name] for name in able if name in moving})
    await _dirs_back(admin, book, able)
    await _until_at_rest(admin, clock, able)
    doubtful = {name: step for name, step in able.items() if name not in confirmed}
    now = {**await _when_heard(admin, clock, doubtful), **confirmed}
    moves = await admin.list_partition_reassignments(able)
    reorder = []
    for name, step in able.items():
        replicas = now.get(name)
        if name in moves:
            taken.refused[name] = "it is still being moved"
        elif replicas is None:
            taken.others[name] = "its topic is gone"
        elif replicas == step.after:
            taken.arrived.append(name)
        elif name not in moving and has_extra_logs(step, copies.get(name, ())):
            taken.refused[name] = "a broker has its log, but the metadata does not say so: try again"
        elif set(replicas) == set(step.before):
            taken.back.append(name)
            if replicas != step.before:
                reorder.append(Step(partition=name, before=replicas, after=step.before))
            elif set(step.before) == set(step.after):  # old metadata may hide that it has arrived
                reorder.append(Step(partition=name, before=step.after, after=step.before))
        else:
            taken.arrived.append(name)
    if taken.arrived:
        book.write("finished", steps=[step_document(able[name]) for name in taken.arrived])
    if taken.back:
        book.write("cancelled", partitions=[list(name) for name in taken.back])
    await _reorder(admin, clock, book, reorder, alive)
    return taken


def _why_not_cancelled(
    step: Step, alive: Collection[BrokerId], gone: Mapping[TopicPartition, frozenset[BrokerId]]
) -> str | None:
    """Say why a step under way cannot be taken back; `gone` are replicas that were down before the plan."""
    dead = [broker for broker in step.before if broker not in alive]
    if len(dead) == len(step.before):
        return "none of its original replicas is there"
    lost = [broker for broker in dead if broker not in gone.get(step.partition, frozenset())]
    return f"its original replica on broker {lost[0]} is not there" if lost else None


def _gone_before(plan: Plan) -> dict[TopicPartition, frozenset[BrokerId]]:
    """Return the replicas whose brokers were already down when the plan was made."""
    return {
        move.partition: frozenset(broker for broker in move.before if broker not in move.dirs_before)
        for move in plan.moves
        if move.dirs_before
    }


async def _cancel(
    admin: Admin, moves: Mapping[TopicPartition, PartitionReassignment]
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Cancel these moves; return the replicas of those that the controller has cancelled.

    They follow from what the controller has listed. A broker may not hear of it for a while, not even the
    controller's own, and tells the replicas in the order from before the move.
    """
    answers = await admin.alter_partition_reassignments(dict.fromkeys(moves, None)) if moves else {}
    return {
        name: ReplicaAssignment(move.replicas, move.adding, move.removing).origin
        for name, move in moves.items()
        if name in answers and answers[name] is None
    }


async def _when_heard(
    admin: Admin, clock: Clock, steps: Mapping[TopicPartition, Step]
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the replicas once a broker's metadata also shows them at rest, or after a grace period."""
    until_s = clock.monotonic_s() + _GRACE_S
    while True:
        now = await partitions_now(admin, (name.topic for name in steps))
        heard = all(name in now and _rests(now[name], step) for name, step in steps.items())
        if heard or clock.monotonic_s() >= until_s:
            return {name: now[name].replicas for name in steps if name in now}
        await clock.sleep(_LOOK_EVERY_S)


def _rests(partition: Partition, step: Step) -> bool:
    """Return whether a partition is at rest. Mid-move it may list the same replicas, but not in sync."""
    if set(partition.replicas) == set(step.before):
        return True
    return partition.replicas == step.after and set(step.after) <= set(partition.isr)


async def _dirs_back(admin: Admin, book: RunJournal, steps: Mapping[TopicPartition, Step]) -> None:
    """Send replicas back to their original log dirs, which cancels their moves to the target log dirs.

    A replica in a third log dir, or on its way there, was sent there by another tool.
    """
    came_from = {move.partition: move.dirs_before for move in book.ledger.plan.moves}
    wanted = {
        TopicPartitionReplica(name, broker): path
        for name, step in steps.items()
        for broker, path in zip(step.after, step.log_dirs, strict=False)
        if path != ANY_DIR and broker in step.before and broker in came_from.get(name, {})
    }
    if not wanted:
        return
    disks = await admin.describe_log_dirs(sorted({which.broker for which in wanted}))
    targets = {
        which: came_from[which.partition][which.broker]
        for broker, told in disks.items()
        if not isinstance(told, BrokerError)
        for replica in told.replicas
        if wanted.get(which := TopicPartitionReplica(replica.partition, broker)) == replica.log_dir
    }
    if targets:
        await admin.alter_replica_log_dirs(targets)


async def _reorder(
    admin: Admin, clock: Clock, book: RunJournal, steps: Sequence[Step], alive: frozenset[BrokerId]
) -> None:
    """Restore the order of the replicas: Kafka leaves them in the order of the cancelled target."""
    if not steps:
        return
    book.write("submit", steps=[step_document(step) for step in steps])
    await Submitter(admin).submit(steps, alive)
    await _until_at_rest(admin, clock, [step.partition for step in steps])
    book.write("cancelled", partitions=[list(step.partition) for step in steps])


async def _until_at_rest(admin: Admin, clock: Clock, names: Iterable[TopicPartition]) -> None:
    wanted = tuple(names)
    until_s = clock.monotonic_s() + _WAIT_S
    while await admin.list_partition_reassignments(wanted) and clock.monotonic_s() < until_s:
        await clock.sleep(_LOOK_EVERY_S)
