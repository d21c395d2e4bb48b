"""Explain what a plan achieves, and why it achieves no more."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.plan.explain.amounts import by_broker_and_rack, loads_of, sides_of
from restow.plan.explain.notes import notes_of
from restow.plan.request.framing import around, ask, is_asked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.model import BrokerId, Move, Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.explain.amounts import Amount
    from restow.plan.explain.note import Note
    from restow.plan.request.framing import Asked
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.problem import Bools, Floats

_SLACK = 1e-9


@frozen
class GoalLine:
    """One goal: the largest and the smallest load of a broker in multiples of its share, before and after."""

    name: str
    unit: str
    band: float | None
    allowed: tuple[float, float] | None
    """The range of multiples of its share that a broker may have; wider than the band where whole numbers of
    replicas or leaders allow no less. None if any amount is allowed.
    """
    asked: bool
    """Whether the request names this goal; otherwise it only must not get worse than its band."""
    before: tuple[float, float]
    after: tuple[float, float]
    out_of_band: int
    """How many brokers are out of band afterwards, whether or not the goal was requested."""


_PLURAL = ("replicas", "leaders")


@frozen
class Unmet:
    """A goal that a broker does not reach, and the reason."""

    goal: str
    broker: BrokerId
    before: float | None
    """The broker's load before the plan in multiples of its share then; None if it had no share."""
    ratio: float
    """The broker's load in multiples of its share."""
    taken_out: bool
    """Whether it is the plan that takes the broker out of its band."""
    because: str

    @property
    def text(self) -> str:
        """Return a sentence about it."""
        where, at = f"{self.goal} of broker {self.broker}", f"{self.ratio:.3f} × its share"
        change = "" if self.before is None else f"from {self.before:.3f} "
        if self.taken_out:
            return f"the plan takes {where} {change}to {at}: {self.because}"
        one = self.goal not in _PLURAL
        if self.before is not None and f"{self.before:.3f}" != f"{self.ratio:.3f}":
            return f"{where} {'goes' if one else 'go'} {change}to {at}, not into its band: {self.because}"
        return f"{where} {'stays' if one else 'stay'} at {at}: {self.because}"


@frozen
class Explanation:
    """Everything to say about a plan."""

    goals: tuple[GoalLine, ...]
    brokers: tuple[Amount, ...]
    racks: tuple[Amount, ...]
    reasons: Mapping[str, int]
    """How many moves serve each goal or demand."""
    unmet: tuple[Unmet, ...]
    notes: tuple[Note, ...]
    copied_bytes: int
    """All bytes that are copied."""
    between_brokers_bytes: int
    """Bytes copied over the network; the rest is copied between log dirs."""
    bound_bytes: int | None

    @property
    def ratio(self) -> float | None:
        """Bytes copied between brokers, divided by the minimum; None if nothing has to be copied."""
        return self.between_brokers_bytes / self.bound_bytes if self.bound_bytes else None


def explain(
    snapshot: Snapshot,
    load: LoadModel | None,
    plan: Plan,
    request: PlanRequest,
    asked: Asked | None = None,
) -> Explanation:
    """Explain a plan made from this snapshot and request; `asked` is the request as arrays."""
    asked = asked or ask(snapshot, load, request)
    sides = sides_of(asked.arrays, plan.moves)
    before, after = loads_of(asked, plan.moves, sides)
    reasons: dict[str, int] = {}
    for move in plan.moves:
        kind = move.reason.partition(":")[0]
        reasons[kind] = reasons.get(kind, 0) + 1
    brokers, racks = by_broker_and_rack(snapshot, asked.arrays, plan.moves, sides)
    return Explanation(
        goals=tuple(_goal_line(asked, number, before, after) for number in range(len(asked.goals))),
        brokers=brokers,
        racks=racks,
        reasons=reasons,
        unmet=tuple(unmet_of(asked, before, after, plan.moves)),
        notes=notes_of(snapshot, asked, load, plan.moves),
        copied_bytes=plan.bytes_to_copy,
        between_brokers_bytes=sum(move.size_bytes * len(move.adding) for move in plan.moves),
        bound_bytes=plan.bound_bytes,
    )


def _goal_line(asked: Asked, number: int, before: Floats, after: Floats) -> GoalLine:
    goal, request = asked.goals[number], asked.request
    share = asked.share[:, number]
    part = share > 0
    band = request.bands.get(goal.name, goal.band)
    low, high = around(share, band, goal.counted)
    if goal.name in request.relieve and not request.balance:
        low, high = np.zeros_like(share), share * request.relieve[goal.name]
    slack = _SLACK * (float(share.max()) or 1.0)
    outside = part & ((after[:, number] > high + slack) | (after[:, number] < low - slack))
    return GoalLine(
        name=goal.name,
        unit=goal.unit,
        band=band,
        allowed=None
        if band is None or not part.any()
        else (float((low[part] / share[part]).min()), float((high[part] / share[part]).max())),
        asked=_is_balanced(asked, number),
        before=_extremes(asked.share_before[:, number], before[:, number]),
        after=_extremes(share, after[:, number]),
        out_of_band=0 if band is None else int(outside.sum()),
    )


def _is_balanced(asked: Asked, number: int) -> bool:
    """Return whether the request brings this goal into its band, or at least below a limit."""
    request, problem = asked.request, asked.problem
    relieved = asked.goals[number].name in request.relieve and not request.balance
    return relieved or is_asked(request, problem.leading[:, number], problem.following[:, number])


def _inside(asked: Asked, number: int, before: Floats) -> Bools:
    """Return the brokers that are in the goal's band before the plan, by the shares before it."""
    goal, share = asked.goals[number], asked.share_before[:, number]
    low, high = around(share, asked.request.bands.get(goal.name, goal.band), goal.counted)
    slack = _SLACK * (float(share.max()) or 1.0)
    has = before[:, number]
    inside: Bools = (share > 0) & (has <= high + slack) & (has >= low - slack)
    return inside


def _extremes(share: Floats, load: Floats) -> tuple[float, float]:
    """Return the largest and the smallest multiple of its share that a broker has."""
    some = share > 0
    ratios = load[some] / share[some]
    return (float(ratios.max()), float(ratios.min())) if ratios.size else (1.0, 1.0)


def _outside(asked: Asked, number: int, load: Floats) -> list[tuple[int, bool]]:
    """Return the brokers out of band, each with whether it is above."""
    found = []
    mean = float(asked.share[:, number].max()) or 1.0
    for broker in np.flatnonzero(asked.share[:, number] > 0).tolist():
        has = load[broker, number]
        if has > asked.problem.upper[broker, number] + _SLACK * mean:
            found.append((broker, True))
        elif has < asked.problem.lower[broker, number] - _SLACK * mean:
            found.append((broker, False))
    return found


def unmet_of(asked: Asked, before: Floats, after: Floats, moves: Sequence[Move]) -> list[Unmet]:
    """Return the brokers out of band: in goals that the request balances, or if the plan takes them out.

    A broker that had nothing is expected to change: it replaces another, or gets its first replicas.
    """
    found, reasons = [], _Reasons(asked, len(moves))
    for number, goal in enumerate(asked.goals):
        was_inside, balanced = _inside(asked, number, before), _is_balanced(asked, number)
        for broker, above in _outside(asked, number, after):
            if not balanced and not (was_inside[broker] and before[broker, number]):
                continue
            share, had_share = float(asked.share[broker, number]), float(asked.share_before[broker, number])
            found.append(
                Unmet(
                    goal=goal.name,
                    broker=asked.arrays.brokers[broker],
                    before=float(before[broker, number]) / had_share if had_share > 0 else None,
                    ratio=float(after[broker, number]) / share,
                    taken_out=bool(was_inside[broker]),
                    because=reasons.because(number, broker, above=above),
                )
            )
    return found


class _Reasons:
    """Names the constraints that keep brokers out of band. What they share is counted once."""

    def __init__(self, asked: Asked, moves: int) -> None:
        self._asked, self._moves = asked, moves
        self._part_of = asked.slots.part_of
        self._carried: dict[int, Floats] = {}
        self._at_home: dict[int, Floats] = {}
        self._heaviest: dict[int, float] = {}

    def because(self, number: int, broker: int, *, above: bool) -> str:
        """Name the constraint that keeps a broker out of one goal's band."""
        asked, request, problem = self._asked, self._asked.request, self._asked.problem
        if not _is_balanced(asked, number):
            more = "gives it more" if above else "leaves it less"
            return f"what was asked for {more}, and balance was not asked for; --balance adds that"
        if request.most_moves is not None and self._moves >= request.most_moves:
            return f"no more than {request.most_moves:,} moves are allowed"
        if request.most_bytes is not None:
            return f"no more than {request.most_bytes:,} bytes may be copied"
        here = asked.slots.home == broker
        fixed = here & ~problem.movable & ~problem.forced
        if above and float(self._least(number)[self._part_of[fixed]].sum()) > problem.upper[broker, number]:
            if request.sheds:
                return "what must not be touched is more than the band allows"
            return "it can only change if replicas are copied, which was not asked for"
        if lacks := self._lacks_room(broker, here, above=above):
            return lacks
        heaviest = self._most(number)
        if heaviest > float(problem.upper[broker, number] - problem.lower[broker, number]):
            share = heaviest / max(float(asked.share[broker, number]), 1e-300)
            return (
                f"single replicas are too large: up to {share:.0%} of the broker's share, more than the band"
            )
        if not problem.receives[asked.able].all() and (above or not problem.receives[broker]):
            return "only the brokers that are being added are given replicas" + (
                ", and they would get more than their band" if above else ""
            )
        if self._is_bound_to_its_rack(number, broker, above=above):
            return f"with a replica in each of {self._racks} racks, what a rack has cannot go to another"
        return "nothing was found that would help; try another seed, a wider band, or more time"

    def _lacks_room(self, broker: int, here: Bools, *, above: bool) -> str:
        problem, free = self._asked.problem, self._free
        others = np.arange(len(free)) != broker
        takers = problem.receives & others if above else ~others
        smallest = self._sizes[here if above else ~here].min(initial=np.inf)
        if not np.isfinite(smallest) or free[takers].max(initial=-np.inf) >= smallest:
            return ""
        where = "no other broker has a log dir" if above else "it has no log dir"
        return f"{where} with room below {self._asked.request.fill:.0%}: make room, or raise --fill"

    def _is_bound_to_its_rack(self, number: int, broker: int, *, above: bool) -> bool:
        """Return whether partitions with a replica in every rack keep the broker's rack out of its bands."""
        asked, problem = self._asked, self._asked.problem
        at_home, rack = self._bound(number), asked.arrays.rack == asked.arrays.rack[broker]
        if above:
            return bool(at_home[rack].sum() > problem.upper[rack, number].sum())
        total = float(asked.share[:, number].sum())
        return bool(total - at_home[~rack].sum() < problem.lower[rack, number].sum())

    def _least(self, number: int) -> Floats:
        """Return by partition what a replica carries at least, whether it leads or not."""
        if number not in self._carried:
            problem = self._asked.problem
            self._carried[number] = np.minimum(problem.leading[:, number], problem.following[:, number])
        return self._carried[number]

    def _most(self, number: int) -> float:
        """Return what the heaviest replica carries at most."""
        if number not in self._heaviest:
            problem = self._asked.problem
            most = np.maximum(problem.leading[:, number], problem.following[:, number])
            self._heaviest[number] = float(most.max())
        return self._heaviest[number]

    def _bound(self, number: int) -> Floats:
        """Return by broker what it carries at least of partitions with a replica in every rack."""
        if number not in self._at_home:
            asked, part_of = self._asked, self._part_of
            bound = (asked.slots.home >= 0) & (np.diff(asked.slots.offsets) >= self._racks)[part_of]
            carried, brokers = self._least(number)[part_of[bound]], len(asked.arrays.rack)
            at_home: Floats = np.bincount(asked.slots.home[bound], carried, minlength=brokers).astype(float)
            self._at_home[number] = at_home
        return self._at_home[number]

    @cached_property
    def _racks(self) -> int:
        return len(np.unique(self._asked.arrays.rack[self._asked.able]))

    @cached_property
    def _sizes(self) -> Floats:
        sizes: Floats = self._asked.arrays.facts.size_bytes[self._part_of]
        return sizes

    @cached_property
    def _free(self) -> Floats:
        """The room that is left by broker. A replica that a new factor adds has no home yet."""
        slots, room = self._asked.slots, self._asked.problem.room
        there = slots.home >= 0
        held = self._sizes + (0.0 if slots.own is None else slots.own)
        free: Floats = room - np.bincount(slots.home[there], held[there], minlength=len(room))
        return free
