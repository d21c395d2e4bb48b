"""Judge any plan, ours or another tool's: does it break a rule, and how good is it?

It shares no code with the planner: it counts with dictionaries, partition by partition, what the search
counts with arrays. `crowded` judges each topic by itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.model import ANY_DIR
from restow.plan.judge.scores import able_brokers, crowded, scores_of, working_brokers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from restow.model import BrokerId, LogDir, Move, Partition, Snapshot, TopicPartition
    from restow.model.load import LoadModel
    from restow.plan.judge.scores import Score
    from restow.plan.request.request import PlanRequest


@frozen
class PlanViolation:
    """A rule that a plan breaks, and where."""

    rule: str
    where: str
    what: str


@frozen
class Judgement:
    """The result of an evaluation."""

    violations: tuple[PlanViolation, ...]
    scores: Mapping[str, Score]
    crowded: Mapping[str, tuple[int, int]]
    """Replicas and leaders of a topic beyond a broker's share, before and after."""
    copied_bytes: int
    moves: int


def evaluate(
    snapshot: Snapshot, load: LoadModel | None, moves: Iterable[Move], request: PlanRequest
) -> Judgement:
    """Judge the effect of these moves on a cluster, by the rules of a request."""
    by_name = {move.partition: move for move in moves}
    found = [
        *_unknown(snapshot, by_name),
        *_rules(snapshot, by_name, request),
        *_full(snapshot, by_name, request),
    ]
    copied = sum(move.bytes_to_copy for move in by_name.values())
    if request.most_bytes is not None and copied > request.most_bytes:
        found.append(PlanViolation(rule="budget", where="plan", what=f"copies {copied:,} bytes"))
    if request.most_moves is not None and len(by_name) > request.most_moves:
        found.append(PlanViolation(rule="budget", where="plan", what=f"has {len(by_name):,} moves"))
    return Judgement(
        violations=tuple(found),
        scores=scores_of(snapshot, load, by_name, request),
        crowded=crowded(snapshot, by_name, request),
        copied_bytes=copied,
        moves=len(by_name),
    )


def _unknown(snapshot: Snapshot, moves: Mapping[TopicPartition, Move]) -> Iterator[PlanViolation]:
    for name, move in moves.items():
        partition = snapshot.partition(name)
        if partition is None:
            yield PlanViolation(rule="exists", where=str(name), what="there is no such partition")
        elif partition.replicas != move.before:
            yield PlanViolation(
                rule="pinned", where=str(name), what=f"has {partition.replicas}, not {move.before}"
            )


def _rules(
    snapshot: Snapshot, moves: Mapping[TopicPartition, Move], request: PlanRequest
) -> Iterator[PlanViolation]:
    """Check the rules for single partitions."""
    able = able_brokers(snapshot, request)
    racks, working = racks_of(snapshot), working_brokers(snapshot)
    for name, partition in snapshot.all_partitions():
        move = moves.get(name)
        where = str(name)
        after = partition.replicas if move is None else move.after
        covered = request.covers(name.topic) and name not in request.except_partitions
        settled = partition.leader is not None and not partition.moving
        if move is not None:
            yield from _places(move, partition, able, request)
            if not covered or not settled:
                yield PlanViolation(rule="excluded", where=where, what="is touched but must not be")
            if (move.adding or move.removing) and not request.any_rack:
                yield from _spread(move, racks, able, request)
            yield from _replaced(move, request)
            if (led := _led(partition, after, working, request)) is not None:
                yield PlanViolation(
                    rule="led", where=where, what=f"{after} is not led by {led}, as it must be"
                )
        if not (covered and settled):
            continue
        if left := sorted(request.leaving & set(after)):
            yield PlanViolation(rule="drained", where=where, what=f"is still on {left}")
        replication_factor = request.replication_factor_of(
            name.topic, internal=snapshot.topic[name.topic].internal
        )
        if len(after) != (len(partition.replicas) if replication_factor is None else replication_factor):
            yield PlanViolation(rule="factor", where=where, what=f"has {len(after)} replicas")
        spread = len({racks[each] for each in after})
        if request.fix_racks and spread < _most_racks(after, racks, able, request):
            yield PlanViolation(rule="racks", where=where, what=f"{after} could be in more racks")
        if could := _could_lead(snapshot, partition, after, request):
            yield PlanViolation(rule="demoted", where=where, what=f"{after} is led by another than {could}")


def _led(
    partition: Partition, after: tuple[BrokerId, ...], working: frozenset[BrokerId], request: PlanRequest
) -> BrokerId | None:
    """Return the leader of before if it no longer leads but has to: a live replica is out of sync, and
    nothing has to move or to be demoted.
    """
    may_have_to_move = request.replication_factors or request.fix_racks or request.spread_topics
    lags = any(each in working and each not in partition.isr for each in partition.replicas)
    if may_have_to_move or not lags or request.leaving & set(partition.replicas):
        return None
    before, now = (next((e for e in order if e in working), None) for order in (partition.replicas, after))
    stays = before in after and before not in request.demote
    return before if stays and now != before else None


def _could_lead(
    snapshot: Snapshot, partition: Partition, after: tuple[BrokerId, ...], request: PlanRequest
) -> list[BrokerId]:
    """If a demoted broker is the first able to lead, return the brokers that could lead instead."""
    live = [each for each in after if each in snapshot.broker]
    if not live or live[0] not in request.demote:
        return []
    barred = request.demote | request.barred
    return [
        each
        for each in live
        if each not in barred and (each in partition.isr or each not in partition.replicas)
    ]


def _replaced(move: Move, request: PlanRequest) -> Iterator[PlanViolation]:
    """In a request with only a replacement, check that the new broker takes exactly the old one's place."""
    alone = not (
        request.sheds or request.drain or request.replication_factors or request.fix_racks or request.leaders
    )
    if request.replace and alone and not request.demote and not request.disks:
        wanted = tuple(request.replace.get(each, each) for each in move.before)
        if move.after != wanted:
            yield PlanViolation(
                rule="replaced", where=str(move.partition), what=f"{move.after}, not {wanted}"
            )


def _most_racks(
    after: tuple[BrokerId, ...],
    racks: Mapping[BrokerId, str],
    able: frozenset[BrokerId],
    request: PlanRequest,
) -> int:
    """Return the most racks that a partition could span; its replicas on excluded brokers stay."""
    stays = [racks[each] for each in after if each in request.except_brokers]
    possible = {racks[each] for each in (*able, *after)}
    return min(len(set(stays)) + len(after) - len(stays), len(possible))


def _places(
    move: Move, partition: Partition, able: frozenset[BrokerId], request: PlanRequest
) -> Iterator[PlanViolation]:
    where = str(move.partition)
    if len(set(move.after)) != len(move.after) or not move.after:
        yield PlanViolation(rule="distinct", where=where, what=f"{move.after}")
    for broker in move.adding:
        if broker not in able:
            yield PlanViolation(rule="live", where=where, what=f"broker {broker} may not be given replicas")
    for broker in move.removing:
        if broker in request.except_brokers:
            yield PlanViolation(rule="excluded", where=where, what=f"broker {broker} must keep its replicas")
    if move.log_dirs and len(move.log_dirs) != len(move.after):
        yield PlanViolation(rule="log dirs", where=where, what="there is not one for each replica")
    copies_nothing = not (
        request.sheds or request.leaving or request.replication_factors or request.fix_racks
    )
    reorders = request.leaders or request.demote
    if copies_nothing and (move.adding or move.removing):
        yield PlanViolation(rule="in place", where=where, what="a replica changes its broker")
    if copies_nothing and not request.disks and move.dir_changes:
        yield PlanViolation(rule="in place", where=where, what="a replica changes its log dir")
    if request.disks and copies_nothing and not reorders and move.after != partition.replicas:
        yield PlanViolation(rule="in place", where=where, what="the order of replicas changes")


def _spread(
    move: Move, racks: Mapping[BrokerId, str], able: frozenset[BrokerId], request: PlanRequest
) -> Iterator[PlanViolation]:
    """Check that a partition spans no fewer racks than before, and that what had to move is in racks of its
    own, as far as brokers allow and a replacement leaves a choice.
    """
    rest = [each for each in move.before if each not in request.leaving]
    stays, forced = {racks[each] for each in rest}, len(move.after) - len(rest)
    before = len({racks[broker] for broker in move.before})
    possible = len(stays | {racks[broker] for broker in able})
    apart = len(stays) + forced if forced > 0 and not request.replace else 0
    wanted = min(len(move.after), possible, max(before, apart))
    if len({racks[broker] for broker in move.after}) < wanted:
        yield PlanViolation(rule="racks", where=str(move.partition), what=f"{move.before} to {move.after}")


def _full(
    snapshot: Snapshot, moves: Mapping[TopicPartition, Move], request: PlanRequest
) -> Iterator[PlanViolation]:
    """Check that no target log dir is filled past its limit, and that no failed log dir is used."""
    came: dict[tuple[BrokerId, str], int] = defaultdict(int)
    went: dict[tuple[BrokerId, str], int] = defaultdict(int)
    for move in moves.values():
        targets = dict(zip(move.after, move.log_dirs, strict=False))
        own = _own_sizes(snapshot, move)
        for broker in move.removing:
            went[broker, move.dirs_before.get(broker, "")] += own.get(broker, move.size_bytes)
        for broker, path in move.dir_changes.items():
            went[broker, move.dirs_before.get(broker, "")] += own.get(broker, move.size_bytes)
            came[broker, path] += own.get(broker, move.size_bytes)
        for broker in move.adding:
            dirs = [each for each in _dirs(snapshot, broker) if not each.failed and not each.cordoned]
            path = targets.get(broker, ANY_DIR)
            if path == ANY_DIR and len(dirs) == 1:
                path = dirs[0].path
            came[broker, path] += move.size_bytes
    for (broker, path), size in came.items():
        for log_dir in _dirs(snapshot, broker):
            if log_dir.path != path:
                continue
            if log_dir.failed:
                yield PlanViolation(rule="live", where=f"{broker}:{path}", what="the log dir has failed")
            elif log_dir.cordoned:
                yield PlanViolation(rule="cordoned", where=f"{broker}:{path}", what="the log dir is cordoned")
            elif log_dir.total_bytes is not None and log_dir.usable_bytes is not None:
                used = log_dir.total_bytes - log_dir.usable_bytes + size - went[broker, path]
                if used > log_dir.total_bytes * request.fill + 1:
                    what = f"{used:,} of {log_dir.total_bytes:,} bytes"
                    yield PlanViolation(rule="room", where=f"{broker}:{path}", what=what)


def _own_sizes(snapshot: Snapshot, move: Move) -> Mapping[BrokerId, int]:
    partition = snapshot.partition(move.partition)
    return {} if partition is None else partition.own_sizes


def _dirs(snapshot: Snapshot, broker: BrokerId) -> tuple[LogDir, ...]:
    there = snapshot.broker.get(broker)
    return there.log_dirs if there else ()


def racks_of(snapshot: Snapshot) -> Mapping[BrokerId, str]:
    named: dict[BrokerId, str] = defaultdict(str)
    unnamed = all(broker.rack is None for broker in snapshot.brokers)
    everyone = {each for _, partition in snapshot.all_partitions() for each in partition.replicas}
    for broker in everyone | snapshot.broker.keys():
        there = snapshot.broker.get(broker)
        named[broker] = f"broker {broker}" if unnamed else (there.rack if there and there.rack else "")
    return named
