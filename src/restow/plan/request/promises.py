"""What a plan promises to reach, and what it leaves behind.

A promise is checked as a goal after execution: the broker is empty, whatever partitions exist by then. A
partition that the plan cannot change is listed with the reason, and makes the plan incomplete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.model import Left, Promise
from restow.plan.explain.amounts import loads_of, sides_of
from restow.plan.goals import DISK, LEADERS, REPLICAS
from restow.plan.request.demands import led_by_demoted, wanted_replication_factor
from restow.plan.search.arrays import mask_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import BrokerId, Move, TopicPartition
    from restow.plan.request.framing import Asked
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.arrays import Arrays

_SEEN_IN_SNAPSHOTS = {goal.name for goal in (DISK, REPLICAS, LEADERS)}
_SLACK = 1e-9


def promises_of(asked: Asked, moves: Sequence[Move]) -> tuple[Promise, ...]:
    """Return what holds once all of these moves are done."""
    request, topics = asked.request, asked.request.only_topics
    able = tuple(broker for broker, yes in zip(asked.arrays.brokers, asked.able.tolist(), strict=True) if yes)
    found = []
    if request.drain:
        found.append(Promise(kind="drained", brokers=tuple(sorted(request.drain)), topics=topics))
    found += [
        Promise(kind="replaced", brokers=pair, topics=topics) for pair in sorted(request.replace.items())
    ]
    found += [
        Promise(kind="replication_factor", topics=(topic,), replication_factor=replication_factor)
        for topic, replication_factor in request.replication_factors.items()
    ]
    if request.fix_racks:
        found.append(Promise(kind="racks_apart", brokers=able, topics=topics))
    if request.demote:
        found.append(Promise(kind="no_leaders", brokers=tuple(sorted(request.demote)), topics=topics))
    return (*found, *_balanced(asked, moves))


def _balanced(asked: Asked, moves: Sequence[Move]) -> list[Promise]:
    """Return the requested goals that will be balanced, among those that a snapshot shows."""
    if not asked.request.balance:
        return []
    after = loads_of(asked, moves, sides_of(asked.arrays, moves))[1]
    found = []
    for number, goal in enumerate(asked.goals):
        share, band = asked.share[:, number], asked.request.bands.get(goal.name, goal.band)
        part = share > 0
        slack = _SLACK * max(float(share.max()), 1.0)
        out = (after[:, number] > asked.problem.upper[:, number] + slack) | (
            after[:, number] < asked.problem.lower[:, number] - slack
        )
        if number == 0 and asked.problem.own is not None and band is not None:
            # New replicas may be larger than those they replace: verify goes by what there is in the end.
            then = share * (float(after[part, 0].sum()) / max(float(share.sum()), 1.0))
            out |= np.abs(after[:, 0] - then) > then * band + slack
        if goal.name in _SEEN_IN_SNAPSHOTS and band is not None and not (out & part).any():
            brokers = tuple(asked.arrays.brokers[at] for at in np.flatnonzero(part).tolist())
            found.append(Promise(kind="balanced", brokers=brokers, goal=goal.name, band=band))
    return found


def left_behind(asked: Asked, moves: Sequence[Move]) -> tuple[Left, ...]:
    """Return every partition that the request covers but the plan leaves unchanged."""
    request, arrays = asked.request, asked.arrays
    after = {move.partition: move.after for move in moves}
    found: dict[TopicPartition, str] = {}
    for number in _concerned(asked):
        name = arrays.names[number]
        if not request.is_about(name.topic) or name in found:
            continue
        why = _unfulfilled(asked, number, after.get(name, arrays.partitions[number].replicas))
        if why is not None:
            found[name] = why
    return tuple(Left(partition=name, why=why) for name, why in sorted(found.items()))


def _concerned(asked: Asked) -> list[int]:
    """Return the covered partitions that may not change, which a request could leave behind."""
    request, arrays = asked.request, asked.arrays
    concerned = np.zeros(len(arrays.names), dtype=bool)
    if request.leaving:
        concerned[arrays.part_of[mask_of(arrays, request.leaving)[arrays.holder]]] = True
    if request.replication_factors or request.fix_racks:
        concerned[:] = True
    concerned &= ~asked.covered
    concerned[led_by_demoted(arrays, request)] = True
    found: list[int] = np.flatnonzero(concerned).tolist()
    return found


def _unfulfilled(asked: Asked, number: int, after: tuple[BrokerId, ...]) -> str | None:
    """Say which part of the request a partition misses, and why; None if it misses none."""
    request, arrays = asked.request, asked.arrays
    if still := sorted(request.leaving & {*after}):
        return f"stays on broker {', '.join(map(str, still))}: {hindrance(arrays, request, number)}"
    replication_factor = wanted_replication_factor(arrays, request, number)
    if replication_factor is not None and len(after) != replication_factor and not asked.covered[number]:
        return f"stays at {len(after)} replicas: {hindrance(arrays, request, number)}"
    if request.fix_racks and not asked.covered[number]:
        racks = {int(arrays.rack[arrays.index[each]]) for each in after}
        possible = racks | {int(each) for each in arrays.rack[asked.able]}
        if len(racks) < min(len(after), len(possible)):
            return f"stays in {len(racks)} of {len(possible)} racks: {hindrance(arrays, request, number)}"
    return _still_leads(asked, number, after)


def _still_leads(asked: Asked, number: int, after: tuple[BrokerId, ...]) -> str | None:
    request, arrays, partition = asked.request, asked.arrays, asked.arrays.partitions[number]
    first = next((each for each in after if arrays.alive[arrays.index[each]]), None)
    leads = partition.leader if after == partition.replicas else first
    if leads not in request.demote:
        return None
    if not asked.covered[number]:
        return f"is led by broker {leads}: {hindrance(arrays, request, number)}"
    if first not in request.demote:
        return (
            f"is led by broker {leads} although broker {first} is its first replica: let that be elected "
            "(restow doctor --fix)"
        )
    others = [each for each in after if each not in request.demote]
    if not others:
        return f"is led by broker {leads}: all of its replicas are on brokers that are to lead nothing"
    insync = ", ".join(map(str, partition.isr))
    return f"is led by broker {leads}: no other replica could lead it (in sync: {insync})"


def hindrance(arrays: Arrays, request: PlanRequest, number: int) -> str:
    """Say why a partition may not change."""
    name, partition = arrays.names[number], arrays.partitions[number]
    if not request.covers(name.topic):
        return "its topic is excluded (--exclude-topics)"
    if name in request.except_partitions:
        return "it is excluded (--exclude-partitions)"
    return unsettled(arrays, number) or f"its replicas are {list(partition.replicas)}"


def unsettled(arrays: Arrays, number: int) -> str | None:
    """Say why no move can be planned for a partition now; None if one can."""
    partition = arrays.partitions[number]
    if partition.moving:
        ways = (("adding", partition.adding), ("removing", partition.removing))
        what = ", ".join(f"{way} {', '.join(map(str, brokers))}" for way, brokers in ways if brokers)
        return f"it is being moved ({what})"
    if partition.leader is None:
        dead = [each for each in partition.replicas if not arrays.alive[arrays.index[each]]]
        where = f"broker {dead[0]}, which is down" if dead else f"broker {partition.replicas[0]}"
        if len(partition.replicas) == 1:
            return f"its only replica is on {where}"
        return f"it has no leader; its replicas are {list(partition.replicas)}, down are {dead}"
    return None
