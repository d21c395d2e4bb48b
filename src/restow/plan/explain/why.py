"""Explain one partition or one broker of a plan: why it moves or stays, what hinders it, what would help.

What a relaxed rule would save is not guessed: the plan is made again without it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.plan.explain.amounts import loads_of, sides_of
from restow.plan.explain.explain import Unmet, unmet_of
from restow.plan.request.promises import hindrance
from restow.sizes import human_bytes, some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from restow.model import BrokerId, Move, Plan, Snapshot, TopicPartition
    from restow.plan.request.framing import Asked
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.problem import Floats

_SLACK = 1e-9
# A load this near to the edge of its band, as a share of the band's width, is at the edge.
_AT_THE_EDGE = 0.02
_MORE_BAND, _MORE_FILL = 1.5, 0.05


@frozen
class GoalOfBroker:
    """A broker's load of one goal, before and after, and what it may be."""

    goal: str
    before: float
    after: float
    share: float
    lowest: float
    highest: float
    state: str
    """`in band`, `above`, `below`, or `no band` if any amount is allowed."""
    binds: bool
    """Whether it is at the edge of the band, so that the band decides what else may move."""


@frozen
class ReplicaMove:
    """A replica that goes from one broker to another; None where it is new, or only removed."""

    source: BrokerId | None
    target: BrokerId | None
    copied_bytes: int
    freed_bytes: int
    others: Mapping[str, int]
    """How many other brokers could not have taken it, by reason; `possible` for those that could have."""


@frozen
class Saving:
    """The same plan without one rule: what it copies, and how many brokers stay out of a band."""

    rule: str
    copied_bytes: int
    saved_bytes: int
    out_of_band: int
    fewer_out_of_band: int


@frozen
class WhyPartition:
    """Why a partition moves, or stays."""

    partition: str
    size_bytes: int
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    reason: str
    moves: tuple[ReplicaMove, ...]
    brokers: Mapping[BrokerId, tuple[GoalOfBroker, ...]]
    """The loads of the brokers that it leaves and those that it goes to."""
    savings: tuple[Saving, ...]


@frozen
class WhyBroker:
    """Why a broker ends where it does."""

    broker: BrokerId
    role: str
    goals: tuple[GoalOfBroker, ...]
    unmet: tuple[Unmet, ...]
    comes: int
    comes_bytes: int
    goes: int
    goes_bytes: int
    goes_because: Mapping[str, int]
    """How many replicas leave, by reason."""
    binding: tuple[str, ...]
    """What keeps it from having more or less, in sentences."""
    savings: tuple[Saving, ...]


class Why:
    """Answers for one plan."""

    def __init__(
        self,
        snapshot: Snapshot,
        asked: Asked,
        plan: Plan,
        replan: Callable[[Snapshot, PlanRequest], tuple[Plan, Asked]],
    ) -> None:
        """Take a plan, the request as arrays, and how to plan again from a snapshot and a request."""
        self._snapshot, self._asked, self._plan, self._replan = snapshot, asked, plan, replan
        self._before, self._after = loads_of(asked, plan.moves, sides_of(asked.arrays, plan.moves))
        self._move = {move.partition: move for move in plan.moves}

    def of_partition(self, name: TopicPartition) -> WhyPartition:
        """Explain one partition, or refuse a name that is in no snapshot."""
        partition = self._snapshot.partition(name)
        if partition is None:
            raise InvalidInput(f"there is no partition {name} in this cluster: {self._near(name)}")
        move = self._move.get(name)
        after = partition.replicas if move is None else move.after
        moves = () if move is None else tuple(self._moved(move))
        touched = {each for one in moves for each in (one.source, one.target) if each is not None}
        return WhyPartition(
            partition=str(name),
            size_bytes=partition.size_bytes,
            before=partition.replicas,
            after=after,
            reason=move.reason if move is not None else self._stays(name),
            moves=moves,
            brokers={each: tuple(self._goals(each)) for each in sorted(touched)},
            savings=self._savings() if moves else (),
        )

    def of_broker(self, broker: BrokerId) -> WhyBroker:
        """Explain one broker, or refuse an id that no broker has."""
        arrays = self._asked.arrays
        if broker not in arrays.index:
            known = some(arrays.brokers, 10)
            raise InvalidInput(f"there is no broker {broker} in this cluster: there are {known}")
        comes = [move for move in self._plan.moves if broker in move.adding]
        goes = [move for move in self._plan.moves if broker in move.removing]
        goals = tuple(self._goals(broker))
        unmet = tuple(
            each
            for each in unmet_of(self._asked, self._before, self._after, self._plan.moves)
            if each.broker == broker
        )
        return WhyBroker(
            broker=broker,
            role=self._role(broker),
            goals=goals,
            unmet=unmet,
            comes=len(comes),
            comes_bytes=sum(move.size_bytes for move in comes),
            goes=len(goes),
            goes_bytes=sum(move.own_size(broker) for move in goes),
            goes_because=dict(Counter(move.reason.partition(":")[0] for move in goes)),
            binding=tuple(self._binding(broker, goals)),
            savings=self._savings(),
        )

    def _near(self, name: TopicPartition) -> str:
        topic = self._snapshot.topic.get(name.topic)
        if topic is not None:
            return f"{name.topic} has partitions 0 to {topic.count - 1}"
        some = ", ".join(sorted(self._snapshot.topic)[:5])
        return f"there is no topic {name.topic!r}; there are {some}"

    def _stays(self, name: TopicPartition) -> str:
        asked = self._asked
        number = asked.arrays.names.index(name)
        if not asked.covered[number]:
            return f"it stays: {hindrance(asked.arrays, asked.request, number)}"
        home = asked.arrays.holder[asked.arrays.offsets[number] : asked.arrays.offsets[number + 1]]
        above = self._before[home] > asked.problem.upper[home] * (1 + _SLACK)
        if not above.any():
            return "it stays: none of its brokers has too much of anything"
        goals = ", ".join(goal.name for place, goal in enumerate(asked.goals) if above[:, place].any())
        return f"it stays: its brokers have too much ({goals}), but others were cheaper to move or fit better"

    def _moved(self, move: Move) -> Iterator[ReplicaMove]:
        """Yield the replicas of a move, each with the brokers that could not have taken it."""
        arriving, leaving = list(move.adding), list(move.removing)
        for at in range(max(len(arriving), len(leaving))):
            source = leaving[at] if at < len(leaving) else None
            target = arriving[at] if at < len(arriving) else None
            yield ReplicaMove(
                source=source,
                target=target,
                copied_bytes=0 if target is None else move.size_bytes,
                freed_bytes=0 if source is None else move.own_size(source),
                others={} if target is None else self._others(move, source, target),
            )

    def _others(self, move: Move, source: BrokerId | None, target: BrokerId) -> Mapping[str, int]:
        """Count the brokers that it did not go to, by what would have been broken there."""
        arrays, problem = self._asked.arrays, self._asked.problem
        number = arrays.names.index(move.partition)
        weight = problem.following[number]
        taken = {int(arrays.rack[arrays.index[each]]) for each in move.after if each != target}
        found: Counter[str] = Counter()
        for broker, at in arrays.index.items():
            if broker in move.after or broker == source:
                continue
            then = self._after[at] + weight
            over = then > np.maximum(problem.upper[at], self._after[at]) * (1 + _SLACK)
            if not problem.receives[at]:
                found["may get nothing"] += 1
            elif int(arrays.rack[at]) in taken:
                found["its rack has another replica"] += 1
            elif then[0] > problem.room[at]:
                found["no room on its disks"] += 1
            elif over.any():
                found[f"would have too much {self._asked.goals[int(np.argmax(over))].name}"] += 1
            else:
                found["possible"] += 1
        return dict(found)

    def _role(self, broker: BrokerId) -> str:
        asked, request = self._asked, self._asked.request
        at = asked.arrays.index[broker]
        if not asked.arrays.alive[at]:
            return "down"
        if broker in request.leaving:
            return "to be emptied"
        if broker in request.except_brokers:
            return "excluded"
        if not asked.able[at]:
            return "cordoned"
        return "receives and gives" if asked.problem.receives[at] else "only gives"

    def _goals(self, broker: BrokerId) -> Iterator[GoalOfBroker]:
        asked = self._asked
        at, problem = asked.arrays.index[broker], asked.problem
        for number, goal in enumerate(asked.goals):
            low, high = float(problem.lower[at, number]), float(problem.upper[at, number])
            has = float(self._after[at, number])
            slack = _SLACK * max(high, 1.0)
            limited = high <= float(self._after[:, number].sum())
            state = "above" if has > high + slack else "below" if has < low - slack else "in band"
            edge = _AT_THE_EDGE * (high - low)
            yield GoalOfBroker(
                goal=goal.name,
                before=float(self._before[at, number]),
                after=has,
                share=float(asked.share[at, number]),
                lowest=low,
                highest=high,
                state=state if limited or state != "in band" else "no band",
                binds=limited and (has >= high - edge or has <= low + edge),
            )

    def _binding(self, broker: BrokerId, goals: tuple[GoalOfBroker, ...]) -> Iterator[str]:
        """Say what keeps a broker from having more, or less."""
        asked = self._asked
        at, problem = asked.arrays.index[broker], asked.problem
        for goal in goals:
            if goal.binds and goal.highest > 0:
                side = "upper" if goal.after * 2 > goal.lowest + goal.highest else "lower"
                yield f"band: {goal.goal} is at the {side} edge, {_ratio(goal.after, goal.share)} its share"
        room, has = float(problem.room[at]), float(self._after[at, 0])
        if np.isfinite(room) and room - has < 0.02 * max(room, 1.0):
            free = human_bytes(max(int(room - has), 0))
            yield f"disk fill: {free} are left below {asked.request.fill:.0%} of its log dirs"
        kept = np.flatnonzero((problem.home == at) & ~problem.movable & ~problem.forced)
        if kept.size:
            sizes = problem.following[asked.slots.part_of[kept], 0]
            yield f"excluded: {kept.size:,} replicas, {human_bytes(int(sizes.sum()))}, may not be touched"
        racks = len(np.unique(asked.arrays.rack[asked.able]))
        if int(np.diff(problem.offsets).max()) >= racks > 1 and racks < len(asked.arrays.brokers):
            yield f"racks: with a replica in each of {racks} racks, nothing leaves the rack"

    def _savings(self) -> tuple[Saving, ...]:
        """Plan again without one rule at a time."""
        now, out_now = self._plan.bytes_to_copy, _out(self._asked, self._plan)
        found = []
        for rule, snapshot, request in self._relaxed():
            try:
                plan, asked = self._replan(snapshot, request)
            except InvalidInput:
                continue
            out = _out(asked, plan)
            found.append(
                Saving(
                    rule=rule,
                    copied_bytes=plan.bytes_to_copy,
                    saved_bytes=now - plan.bytes_to_copy,
                    out_of_band=out,
                    fewer_out_of_band=out_now - out,
                )
            )
        return tuple(found)

    def _relaxed(self) -> Iterator[tuple[str, Snapshot, PlanRequest]]:
        """Yield every rule that could be relaxed, and what to plan with then."""
        snapshot, request, asked = self._snapshot, self._asked.request, self._asked
        if request.sheds:
            wider = {goal.name: request.bands.get(goal.name, goal.band) for goal in asked.goals}
            bands = {name: band and band * _MORE_BAND for name, band in wider.items()}
            widest = max((band for band in bands.values() if band), default=0.0)
            rule = f"bands {_MORE_BAND:g} times as wide (up to ±{widest:.1%})"
            yield rule, snapshot, replace(request, bands={**request.bands, **bands})
        if any(broker.rack is not None for broker in snapshot.brokers):
            brokers = tuple(replace(broker, rack=None) for broker in snapshot.brokers)
            yield "racks ignored", replace(snapshot, brokers=brokers), replace(request, fix_racks=False)
        if request.except_topics or request.except_partitions or request.except_brokers:
            free = replace(
                request, except_topics=(), except_partitions=frozenset(), except_brokers=frozenset()
            )
            yield "nothing excluded", snapshot, free
        if np.isfinite(asked.arrays.room).any() and request.fill + _MORE_FILL <= 1:
            more = replace(request, fill=request.fill + _MORE_FILL)
            yield f"disks filled to {request.fill + _MORE_FILL:.0%}", snapshot, more


def _ratio(load: float, share: float) -> str:
    return f"{load / share:.3f} ×" if share > 0 else "without"


def _out(asked: Asked, plan: Plan) -> int:
    """Return how many brokers are out of a band after a plan, each counted once for every goal."""
    after: Floats = loads_of(asked, plan.moves, sides_of(asked.arrays, plan.moves))[1]
    slack = _SLACK * np.maximum(asked.share.max(axis=0), 1.0)
    out = (after > asked.problem.upper + slack) | (after < asked.problem.lower - slack)
    return int((out & (asked.share > 0)).sum())
