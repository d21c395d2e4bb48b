"""The way back: a plan that undoes what a run has done, the newest first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.errors import RestowError
from restow.model import ANY_DIR, Plan, ReplicaAssignment
from restow.plan.drift import REMADE, ids_of, remade
from restow.plan.pin import pinned_move, topic_ids
from restow.plan.schedule.schedule import waves_of
from restow.plan.schedule.steps import steps_of

if TYPE_CHECKING:
    from restow.execute.journal.runs import Run
    from restow.model import Move, Partition, Snapshot, Step


class CannotUndo(RestowError):
    """What a run has done cannot be brought back as things are. Nothing was changed."""


def inverse(run: Run, snapshot: Snapshot, *, as_far_as_possible: bool = False) -> Plan:
    """Return the moves from where things are to where they were before the run.

    Partitions that the run has not touched are left alone, whatever has become of them. What others have
    moved on since is not ours to bring back; what would go to a broker that is not there cannot be.
    """
    plan = run.ledger.plan
    arrived = {step.partition: turn for turn, step in enumerate(run.ledger.finished)}
    moves: list[Move] = []
    problems: list[str] = []
    strangers = remade(run.ledger.topic_ids, ids_of(snapshot))
    changed = [m for m in plan.moves if m.partition in run.ledger.submitted - run.ledger.found]
    for move in sorted(changed, key=lambda each: -arrived.get(each.partition, -1)):
        now = _at_rest(snapshot.partition(move.partition), run.ledger.under_way.get(move.partition))
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
    if problems and not as_far_as_possible:
        raise CannotUndo(
            f"{'; '.join(problems[:5])}{'; …' if len(problems) > 5 else ''}. With --as-far-as-possible the "
            "others are brought back"
        )
    return Plan(
        cluster_id=plan.cluster_id,
        created_ms=snapshot.taken_ms,
        moves=tuple(moves),
        waves=waves_of(moves, snapshot, plan.limits),
        limits=plan.limits,
        title=f"undo {run.name}",
        topic_ids=topic_ids(snapshot, moves),
    )


def _at_rest(now: Partition | None, under_way: Step | None) -> Partition | None:
    """Return a partition as it is once our own move of it, which `undo` takes back first, is cancelled."""
    if now is None or under_way is None or not now.moving:
        return now
    moving = ReplicaAssignment(now.replicas, now.adding, now.removing)
    ours = moving.target == under_way.after and set(moving.origin) == set(under_way.before)
    return now._replace(replicas=under_way.before, adding=(), removing=()) if ours else now


def _back(move: Move, now: Partition) -> Move | None:
    """None if it is where it was."""
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
