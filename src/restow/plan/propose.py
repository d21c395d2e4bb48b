"""Make a plan from a snapshot and a request.

    snapshot, load ─► arrays ─► problem (bands, what must and what may move) ─► search ─► moves ─► waves

Moves that fit into no order of waves are removed, and the rest is searched again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model import ANY_DIR, Move, Plan
from restow.plan.exactly import solve_exactly
from restow.plan.explain.reasons import Reasons
from restow.plan.goals import DEFAULT_BAND
from restow.plan.judge.bound import Bound, least_bytes, with_prices
from restow.plan.judge.whole import HOW_WHOLE
from restow.plan.pin import pinned_move, topic_ids
from restow.plan.request.demands import demoted_last, with_leaders_in_sync
from restow.plan.request.framing import ask, begun
from restow.plan.request.promises import left_behind, promises_of
from restow.plan.request.request import settled
from restow.plan.request.trim import changed_by, load_of, out_of_band, trim
from restow.plan.schedule.log_dir_balance import even_out
from restow.plan.schedule.log_dirs import LogDirSpace
from restow.plan.schedule.schedule import order_of
from restow.plan.search import never, silent, solve
from restow.plan.search.arrays import mask_of
from restow.plan.search.prices import Market

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.model import BrokerId, Limits, Snapshot, TopicPartition
    from restow.model.load import LoadModel
    from restow.plan.request.framing import Asked
    from restow.plan.request.request import PlanRequest, RequestedLimits
    from restow.plan.search import Progress, Solution
    from restow.plan.search.problem import Bools, Ints

_ATTEMPTS = 6
# A plan that copies so little more than the first bound needs no better one;
_CLOSE = 1.002
# one for so many partitions × brokers would take too long.
_MOST_PLACES = 10_000_000


@frozen
class _Chosen:
    """The result so far: each slot's broker, each partition's leader, and the partitions that change."""

    holder: Ints
    leader: Ints
    changed: Bools


def propose(
    snapshot: Snapshot,
    load: LoadModel | None,
    request: PlanRequest,
    out_of_time: Callable[[], bool] = never,
    *,
    created_ms: int = 0,
    limits: Limits | RequestedLimits | None = None,
    asked: Asked | None = None,
    old: Plan | None = None,
    tell: Callable[[Progress, Bound], None] | None = None,
) -> Plan:
    """Return the plan for a request; the best so far when time is up. The same request gives the same plan.

    `asked` is the request as arrays, for callers that have it already. The search begins with the targets of
    an `old` plan, if there is one. `tell` hears how far it is.
    """
    asked = asked or ask(snapshot, load, request)
    if old is not None:
        asked = replace(asked, problem=begun(asked, old))
    bound = least_bytes(asked)
    heard = silent if tell is None else lambda progress: tell(progress, bound)
    if _asks_exactly(asked):
        solution, least = solve_exactly(asked.problem, bound.least_bytes, out_of_time, heard)
    else:
        solution, least = solve(asked.problem, out_of_time, enough_bytes=bound.least_bytes, tell=heard), 0.0
    if solution.homeless.size:
        raise InvalidInput(_homeless(asked, solution))
    if least > bound.least_bytes:
        bound = Bound(least, HOW_WHOLE)
    else:
        bound = _better_bound(asked, bound, solution, out_of_time)
    changed = changed_by(asked, solution)
    banned = np.zeros(len(asked.arrays.names), dtype=bool)
    choose_part = request.most_bytes is not None or request.most_moves is not None or _worse(asked, solution)
    for _ in range(_ATTEMPTS):
        if choose_part or banned.any():
            holder, leader, changed = trim(asked, solution, banned)
            chosen = _Chosen(holder=holder, leader=leader, changed=changed)
        else:
            chosen = _Chosen(holder=solution.holder, leader=solution.leader, changed=changed)
        chosen = _with_demotions(asked, chosen)
        moves, misfits = _moves(asked, snapshot, chosen)
        moves = _within_budget(request, moves)
        keep = replace(settled(limits, moves), fill=request.fill)
        order = order_of(_worst_first(asked, moves), snapshot, keep)
        stuck = {step.partition: why for step, why in order.stuck} | misfits
        if not stuck:
            break
        _refuse_if_forced(asked, stuck)
        number = {name: at for at, name in enumerate(asked.arrays.names)}
        banned[[number[name] for name in stuck]] = True
    else:
        moves = tuple(move for move in moves if move.partition not in stuck)
        order = order_of(_worst_first(asked, moves), snapshot, keep)
    promises = promises_of(asked, moves)
    return Plan(
        cluster_id=snapshot.cluster_id,
        created_ms=created_ms,
        moves=moves,
        waves=order.waves,
        limits=keep,
        title=title_of(request),
        promises=promises,
        known_partitions={each.name: each.count for each in snapshot.topics} if promises else {},
        leaves=left_behind(asked, moves),
        bound_bytes=int(bound.least_bytes),
        bound_by=bound.how,
        topic_ids=topic_ids(snapshot, moves),
    )


def _better_bound(asked: Asked, bound: Bound, solution: Solution, out_of_time: Callable[[], bool]) -> Bound:
    """Return the bound by prices where the plan copies more than the bound that looks at brokers alone."""
    problem = asked.problem
    copied = float(problem.following[asked.slots.part_of[solution.holder != problem.home], 0].sum())
    prices = solution.prices
    worth_it = problem.sheds and len(problem.leader) * len(problem.rack) <= _MOST_PLACES
    if prices is None and copied > bound.least_bytes * _CLOSE and worth_it and not out_of_time():
        market = Market(problem)
        prices = market.in_bytes(market.find(out_of_time))
    return bound if prices is None else with_prices(asked, bound, prices)


def _asks_exactly(asked: Asked) -> bool:
    """Return whether the integer program has every choice that the request leaves to a plan.

    It lets excluded brokers lead nothing that may have another leader, but they may keep what they lead.
    """
    slots, request, problem = asked.slots, asked.request, asked.problem
    forced_anyway = np.array_equal(problem.forced, slots.mandatory)
    excluded = mask_of(asked.arrays, request.except_brokers)[problem.home[problem.leader]]
    anew = problem.begin is None and not (excluded & problem.may_change_leader).any()
    return forced_anyway and anew and not (slots.dropped or request.any_rack or (slots.pinned >= 0).any())


def title_of(request: PlanRequest) -> str:
    """Describe a request in a few words."""
    words = [word for word in ("balance", "leaders", "disks") if getattr(request, word)]
    words += ["fix racks"] * request.fix_racks + ["spread topics"] * request.spread_topics
    for word, brokers in (("add", request.add), ("drain", request.drain), ("demote", request.demote)):
        if brokers:
            words.append(f"{word} {', '.join(map(str, sorted(brokers)))}")
    words += [f"replace {old} by {new}" for old, new in sorted(request.replace.items())]
    words += [
        f"replication factor {replication_factor} for {topic}"
        for topic, replication_factor in request.replication_factors.items()
    ]
    words += [f"relieve {goal} above {limit:g}" for goal, limit in request.relieve.items()]
    if request.cordon:
        words.append(f"nothing to {', '.join(map(str, sorted(request.cordon)))}")
    if request.only_topics and not {*request.only_topics} <= {"*", *request.replication_factors}:
        words.append(f"only topics {', '.join(request.only_topics)}")
    return "; ".join(words)


def _with_demotions(asked: Asked, chosen: _Chosen) -> _Chosen:
    """Add the transfer of leadership away from demoted brokers."""
    if not asked.request.demote:
        return chosen
    leader = with_leaders_in_sync(asked, chosen.holder, chosen.leader)
    return _Chosen(holder=chosen.holder, leader=leader, changed=chosen.changed | asked.must)


def _worse(asked: Asked, solution: Solution) -> bool:
    """Return whether a goal is further out of band than before, although nothing had to move."""
    problem = asked.problem
    if problem.forced.any():
        return False
    before = out_of_band(asked, load_of(asked, problem.home, problem.leader))
    after = out_of_band(asked, load_of(asked, solution.holder, solution.leader))
    return bool((after > before + 1e-9).any())


def _moves(
    asked: Asked, snapshot: Snapshot, chosen: _Chosen
) -> tuple[tuple[Move, ...], dict[TopicPartition, str]]:
    """Return the moves, and the partitions that fit into no log dir."""
    arrays, problem = asked.arrays, asked.problem
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    holder, leader, offsets = chosen.holder.tolist(), chosen.leader.tolist(), problem.offsets.tolist()
    reasons = Reasons(asked, holder, leader)
    why: dict[TopicPartition, str] = {}
    shrunk = np.diff(problem.offsets) < arrays.counts
    led = problem.leader.tolist()
    replaced = (np.add.reduceat(asked.slots.pinned >= 0, problem.offsets[:-1]) > 0).tolist()
    for number in np.flatnonzero(chosen.changed | shrunk).tolist():
        first, last = offsets[number], offsets[number + 1]
        after = [arrays.brokers[at] for at in holder[first:last]]
        if not (replaced[number] and leader[number] == led[number]):
            after.insert(0, after.pop(leader[number] - first))
        targets[arrays.names[number]] = tuple(demoted_last(asked.request, after))
        why[arrays.names[number]] = reasons.of(number)
    into, misfits = _log_dirs(asked, snapshot, targets)
    moves = []
    for name in sorted(dict.fromkeys((*targets, *(partition for partition, _ in into)))):
        partition = snapshot.existing(name)
        replicas = targets.get(name, partition.replicas)
        paths = tuple([into.get((name, broker), ANY_DIR) for broker in replicas]) if into else ()
        reason = why.get(name, "log dirs: one has more than its share")
        move = pinned_move(name, partition, after=replicas, log_dirs=paths, reason=reason)
        if move is not None:
            moves.append(move)
    return tuple(moves), misfits


def _within_budget(request: PlanRequest, moves: tuple[Move, ...]) -> tuple[Move, ...]:
    """Return the moves, with as many log dir moves as the rest of the budget allows."""
    if request.most_moves is None and request.most_bytes is None:
        return moves
    kept = [move for move in moves if move.before != move.after]
    left_moves = math.inf if request.most_moves is None else request.most_moves - len(kept)
    left_bytes = math.inf
    if request.most_bytes is not None:
        left_bytes = request.most_bytes - sum(move.bytes_to_copy for move in kept)
    for move in moves:
        if move.before == move.after and left_moves >= 1 and move.bytes_to_copy <= left_bytes:
            kept.append(move)
            left_moves -= 1
            left_bytes -= move.bytes_to_copy
    return tuple(sorted(kept, key=lambda move: move.partition))


def _log_dirs(
    asked: Asked, snapshot: Snapshot, targets: dict[TopicPartition, tuple[BrokerId, ...]]
) -> tuple[dict[tuple[TopicPartition, BrokerId], str], dict[TopicPartition, str]]:
    """Return the log dirs to request, and the replicas that fit into none."""
    request = asked.request
    space = LogDirSpace(snapshot, request.fill)
    coming: list[tuple[int, TopicPartition, BrokerId]] = []
    for name, replicas in targets.items():
        partition = snapshot.existing(name)
        coming += [
            (partition.size_bytes, name, broker)
            for broker in replicas
            if broker not in partition.replicas and space.of(broker)
        ]
        for broker in partition.replicas:
            if broker not in replicas:
                space.remove(name, broker)
    into: dict[tuple[TopicPartition, BrokerId], str] = {}
    misfits: dict[TopicPartition, str] = {}
    for size_bytes, name, broker in sorted(coming, key=lambda each: (-each[0], each[1:])):
        path = space.place(broker, size_bytes)
        if path is None:
            misfits[name] = f"no log dir of broker {broker} has room for {size_bytes:,} bytes"
        elif len(space.of(broker)) > 1:
            into[name, broker] = path
    band = request.bands.get("log_dirs", DEFAULT_BAND)
    if request.disks and band is not None:
        covered = zip(asked.arrays.names, asked.covered.tolist(), strict=True)
        staying = [name for name, yes in covered if yes and name not in targets]
        brokers = [broker for broker in asked.arrays.brokers if broker not in request.barred]
        into |= even_out(space, brokers, band, staying)
    return into, misfits


def _worst_first(asked: Asked, moves: Sequence[Move]) -> list[Move]:
    """Order the moves: leader changes first, then moves off the fullest disks."""
    arrays, problem = asked.arrays, asked.problem
    held = load_of(asked, problem.home, problem.leader)[:, 0]
    room = np.where(np.isfinite(arrays.room), np.maximum(arrays.room, 1.0), arrays.facts.disk_bytes)
    fullness = (held / room).tolist()

    def turn(move: Move) -> tuple[bool, float]:
        sources = move.removing or tuple(move.dir_changes)
        most = max([fullness[arrays.index[each]] for each in sources], default=0.0)
        return bool(move.bytes_to_copy), -most

    return sorted(moves, key=turn)


def _refuse_if_forced(asked: Asked, stuck: dict[TopicPartition, str]) -> None:
    forced = {asked.arrays.names[at] for at in np.flatnonzero(asked.must).tolist()} & stuck.keys()
    if forced:
        first = min(forced)
        raise InvalidInput(
            f"{first} has to move, but cannot: {stuck[first]}. {len(forced):,} partitions are like that: "
            "make room, add a broker, or raise the limit of filling"
        )


def _homeless(asked: Asked, solution: Solution) -> str:
    """Say why a replica fits nowhere, and the smallest change that would help."""
    arrays, problem = asked.arrays, asked.problem
    part_of = asked.slots.part_of
    worst = int(solution.homeless[np.argmax(arrays.facts.size_bytes[part_of[solution.homeless]])])
    name, size = arrays.names[int(part_of[worst])], arrays.facts.size_bytes[part_of[worst]]
    missing = float(arrays.facts.size_bytes[part_of[solution.homeless]].sum())
    held = load_of(asked, solution.holder, problem.leader)[:, 0]
    free = np.where(problem.receives, problem.room - held, -np.inf)
    best = int(np.argmax(free))
    fill = asked.request.fill + missing / float(arrays.facts.disk_bytes[problem.receives].sum())
    raised = f", or let disks be filled to at least {fill:.0%}" if fill <= 1 else ""
    return (
        f"{len(solution.homeless):,} replicas fit nowhere, {missing:,.0f} bytes in all, the largest of "
        f"{name} with {size:,.0f} bytes; the most room is on broker {arrays.brokers[best]}, "
        f"{max(free[best], 0.0):,.0f} bytes with disks filled to {asked.request.fill:.0%}. Add a broker or "
        f"disks with room for {missing:,.0f} bytes, in a rack that has none of these partitions{raised}"
    )
