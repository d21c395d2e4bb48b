"""Tabu search for small clusters: look at every single change, make the best, and do not undo it for a while.

A change moves a replica, swaps two, or passes leadership on. The search may leave the bands and return:
being out of a band has a price by goal, which rises while the goal is missed and falls while it is met. All
changes are looked at together, as arrays. So this needs no compiler, and a plan for a few hundred replicas
takes less time than importing one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.lead import out_of_band, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Bools, Floats, Ints, Problem
    from restow.plan.search.scale import Scaled

# The cost of being out of band by an average broker's load, relative to copying its bytes: in the result,
_PENALTY = 1e4
# with this much more for making a goal worse than at the start,
_WORSE = 10.0
# and on the way, where it rises and falls by these factors at every step.
_FIRST_PRICE, _DEARER, _CHEAPER = 3.0, 1.2, 0.9
_LEAST_PRICE, _MOST_PRICE = 0.1, 1e4
# A replica may not return to a broker for so many steps, and a few more drawn at random.
_TABU, _TABU_DRAWN = 12, 10
# So many moves and swaps are looked at; of more, some are drawn.
_MOVES, _SWAPS = 2_000, 500
_SAME = 1e-9
_RIGHT = 1e-9


class Effort(NamedTuple):
    """When to stop."""

    steps: int
    """The most changes to make."""
    patience: int
    """The most changes to make without an improvement."""
    enough: float
    """With everything in band and so few bytes copied, in average brokers, nothing more is tried."""
    out_of_time: Callable[[], bool]


class Proposals(NamedTuple):
    """Changes to consider: first moves, then swaps, then leaders."""

    first: Ints
    """The replica that moves, or that comes to lead."""
    second: Ints
    """The replica that comes back in a swap, otherwise -1."""
    here: Ints
    there: Ints
    load: Floats
    """Changes × goals: the load that goes from `here` to `there`, if new replicas are all of one size."""
    less: Floats
    """How much more of the first goal leaves `here` than that."""
    more: Floats
    """How much more of it comes to `there`."""
    fare: Floats
    """The bytes copied in addition, in average brokers."""
    leads: int
    """From which change on only leaders change."""


@dataclass(slots=True, kw_only=True)
class _Board:
    """The placement, which the search changes."""

    holder: Ints
    leader: Ints
    on: Bools
    """Partitions × brokers: whether a broker has a replica."""
    load: Floats
    copied: float


class Tabu:
    """The search on one problem. The same seed gives the same placement."""

    def __init__(self, problem: Problem, scaled: Scaled, racks_kept: Ints, at_first: Floats) -> None:
        """Take the racks that each partition keeps, and by goal the distance from the bands at the start."""
        self._problem, self._scaled, self._racks_kept, self._at_first = problem, scaled, racks_kept, at_first
        partitions, brokers = len(problem.leader), len(problem.rack)
        self._part_of = scaled.replicas.part_of
        home = np.where(problem.forced, -1, problem.home)
        self._was_on = np.zeros((partitions, brokers), dtype=bool)
        self._was_on[self._part_of[home >= 0], home[home >= 0]] = True
        movable = problem.movable | problem.forced
        if problem.pinned is not None:
            movable = movable & (problem.pinned < 0)
        self._movers = np.flatnonzero(movable)
        led = problem.may_change_leader & (np.diff(problem.offsets) > 1)
        self._leads = np.flatnonzero(led[self._part_of])
        self._open: Bools = problem.receives | self._was_on[self._part_of]
        barred = scaled.replicas.barred
        self._open[barred >= 0, barred[barred >= 0]] = False
        self._room = scaled.replicas.room
        self._own_on = np.zeros((partitions, brokers))
        if len(scaled.replicas.own):
            self._own_on[self._part_of[home >= 0], home[home >= 0]] = scaled.replicas.own[home >= 0]
        self._in_rack = np.equal.outer(problem.rack, np.arange(int(problem.rack.max()) + 1)).astype(np.int64)
        one, other = np.triu_indices(len(self._movers), 1) if self._few else (self._movers[:0],) * 2
        apart = self._part_of[self._movers[one]] != self._part_of[self._movers[other]]
        self._pairs = self._movers[one[apart]], self._movers[other[apart]]

    @property
    def _few(self) -> bool:
        return len(self._movers) ** 2 <= 2 * _SWAPS

    def search(self, holder: Ints, leader: Ints, effort: Effort, seed: int) -> tuple[Ints, Ints]:
        """Return the best placement found from this one on."""
        rng = np.random.default_rng(seed)
        board = self._board(holder, leader)
        price = np.full(board.load.shape[1], _FIRST_PRICE)
        best = self._score(board.load, board.copied)
        found = board.holder.copy(), board.leader.copy()
        barred = np.zeros((2, *board.on.shape), dtype=np.int64)
        last = 0
        for turn in range(1, effort.steps + 1):
            if turn - last > effort.patience or effort.out_of_time():
                break
            changes = self._changes(board, rng)
            chosen = self._choose(board, changes, price, barred > turn, best, rng)
            if chosen < 0:
                if not barred.any():
                    break
                barred[:] = 0
                continue
            self._make(board, changes, chosen, barred, turn + _TABU + int(rng.integers(_TABU_DRAWN)))
            score = self._score(board.load, board.copied)
            out = out_of_band(self._scaled, board.load)
            if score < best - _SAME:
                best, last, found = score, turn, (board.holder.copy(), board.leader.copy())
                if out.sum() <= _RIGHT and board.copied <= effort.enough:
                    break
            price = np.clip(
                np.where(out > _RIGHT, price * _DEARER, price * _CHEAPER), _LEAST_PRICE, _MOST_PRICE
            )
        return found

    def score(self, holder: Ints, leader: Ints) -> float:
        """Return how bad a placement is: out of band first, then bytes copied."""
        board = self._board(holder, leader)
        return self._score(board.load, board.copied)

    def _board(self, holder: Ints, leader: Ints) -> _Board:
        on = np.zeros_like(self._was_on)
        on[self._part_of, holder] = True
        board = _Board(holder=holder.copy(), leader=leader.copy(), on=on, load=self._scaled.lower, copied=0.0)
        carried = self._carried(board)
        board.load = np.stack(
            [np.bincount(holder, each, minlength=on.shape[1]) for each in carried.T], axis=1
        ).astype(np.float64)
        board.load[:, 0] += (self._own_on * on).sum(axis=0)
        board.copied = float((self._scaled.size[:, None] * (on & ~self._was_on)).sum())
        return board

    def _carried(self, board: _Board) -> Floats:
        """Return replicas × goals: the load of each, including leadership where it leads."""
        carried: Floats = self._scaled.following[self._part_of]
        carried[board.leader] += self._scaled.extra
        return carried

    def _score(self, load: Floats, copied: float) -> float:
        out = out_of_band(self._scaled, load)
        worse = np.maximum(out - self._at_first - 1e-12, 0.0)
        return float(_PENALTY * (out + _WORSE * worse).sum() + copied)

    def _allowed(self, board: _Board) -> Bools:
        """Return replicas × brokers: where each replica may go, if there is room."""
        problem, part_of = self._problem, self._part_of
        racks = board.on.astype(np.int64) @ self._in_rack
        here, there = problem.rack[board.holder], problem.rack
        same = np.equal.outer(here, there)
        goes_last = racks[part_of, here] == 1
        spans = (racks > 0).sum(axis=1)[part_of] - goes_last
        free = ~goes_last | (spans >= self._racks_kept[part_of])
        allowed: Bools = (racks[part_of][:, there] - same == 0) | same | free[:, None]
        allowed &= ~board.on[part_of] & self._open
        leads = np.zeros(len(part_of), dtype=bool)
        leads[board.leader] = True
        allowed &= ~leads[:, None] | problem.may_lead
        if problem.topic is not None and problem.topic_replicas is not None and len(problem.topic_replicas):
            full = table(problem, board.holder, part_of, True) >= problem.topic_replicas[:, None]
            allowed &= ~full[problem.topic[part_of]]
        if problem.topic is not None and problem.topic_leaders is not None and len(problem.topic_leaders):
            allowed &= ~leads[:, None] | ~self._led_enough(board)[part_of]
        return allowed

    def _led_enough(self, board: _Board) -> Bools:
        """Return partitions × brokers: whether a broker leads as many of the topic as it may."""
        problem = self._problem
        if problem.topic is None or problem.topic_leaders is None or not len(problem.topic_leaders):
            return np.zeros_like(board.on)
        led = table(problem, board.holder[board.leader], np.arange(len(board.leader)), True)
        full: Bools = (led >= problem.topic_leaders[:, None])[problem.topic]
        return full

    def _changes(self, board: _Board, rng: np.random.Generator) -> Proposals:
        """Return all changes that the rules allow, or many of them."""
        part_of, holder, size = self._part_of, board.holder, self._scaled.size
        carried, allowed = self._carried(board), self._allowed(board)
        held = board.load[:, 0]
        hot = self._in_trouble(board)
        moves, to = self._moves(allowed, hot, rng)
        fits = held[to] + carried[moves, 0] + self._own_on[part_of[moves], to] <= self._room[to]
        moves, to = moves[fits], to[fits]
        one, other = self._swaps(hot, rng)
        may = allowed[one, holder[other]] & allowed[other, holder[one]]
        one, other = one[may], other[may]
        less, more = self._own_swapped(board, one, other)
        goes = carried[one, 0] - carried[other, 0]
        fits = (goes + less >= 0) | (held[holder[one]] - goes - less <= self._room[holder[one]])
        fits &= (goes + more <= 0) | (held[holder[other]] + goes + more <= self._room[holder[other]])
        one, other, less, more = one[fits], other[fits], less[fits], more[fits]
        of = part_of[self._leads]
        new = self._leads[
            (board.leader[of] != self._leads)
            & self._problem.may_lead[holder[self._leads]]
            & ~self._led_enough(board)[of, holder[self._leads]]
        ]
        was = self._was_on[part_of, holder].astype(np.float64)
        costs = size[part_of][:, None] * (was[:, None] - self._was_on[part_of])
        return Proposals(
            first=np.concatenate((moves, one, new)),
            second=np.concatenate((np.full(len(moves), -1), other, np.full(len(new), -1))),
            here=np.concatenate((holder[moves], holder[one], holder[board.leader[part_of[new]]])),
            there=np.concatenate((to, holder[other], holder[new])),
            load=np.concatenate(
                (carried[moves], carried[one] - carried[other], self._scaled.extra[part_of[new]])
            ),
            less=np.concatenate((self._own_on[part_of[moves], holder[moves]], less, np.zeros(len(new)))),
            more=np.concatenate((self._own_on[part_of[moves], to], more, np.zeros(len(new)))),
            fare=np.concatenate(
                (
                    costs[moves, to],
                    costs[one, holder[other]] + costs[other, holder[one]],
                    np.zeros(len(new)),
                )
            ),
            leads=len(moves) + len(one),
        )

    def _own_swapped(self, board: _Board, one: Ints, other: Ints) -> tuple[Floats, Floats]:
        """Return what own sizes add to what leaves the first broker of a swap, and the second gets."""
        own, part_of = self._own_on, self._part_of
        here, there = board.holder[one], board.holder[other]
        less = own[part_of[one], here] - own[part_of[other], here]
        return less, own[part_of[one], there] - own[part_of[other], there]

    def _in_trouble(self, board: _Board) -> Ints:
        """Return movable replicas that are away from home or on brokers out of band; all if none is."""
        outside = np.maximum(board.load - self._scaled.upper, self._scaled.lower - board.load).max(axis=1)
        away = ~self._was_on[self._part_of, board.holder]
        hot = self._movers[(outside > _RIGHT)[board.holder[self._movers]] | away[self._movers]]
        return hot if hot.size else self._movers

    def _moves(self, allowed: Bools, hot: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return replicas and the brokers they may go to; of many, mostly some of those in trouble."""
        brokers = allowed.shape[1]
        if len(self._movers) * brokers <= _MOVES:
            moves, to = np.nonzero(allowed[self._movers])
            return self._movers[moves], to
        moves = np.concatenate((rng.choice(hot, _MOVES), rng.choice(self._movers, _MOVES // 2)))
        to = rng.integers(brokers, size=len(moves))
        may = allowed[moves, to]
        return moves[may], to[may]

    def _swaps(self, hot: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return pairs of replicas that may be swapped; of many, some of those in trouble with any other."""
        if self._few:
            return self._pairs
        one, other = rng.choice(hot, _SWAPS), rng.choice(self._movers, _SWAPS)
        apart = self._part_of[one] != self._part_of[other]
        return one[apart], other[apart]

    def _choose(
        self,
        board: _Board,
        changes: Proposals,
        price: Floats,
        barred: Bools,
        best: float,
        rng: np.random.Generator,
    ) -> int:
        """Return the cheapest change that is not barred, or a barred one that beats the best; -1 for none."""
        if not len(changes.first):
            return -1
        lower, upper = self._scaled.lower, self._scaled.upper
        now = (np.maximum(board.load - upper, 0.0) + np.maximum(lower - board.load, 0.0)) @ price
        cost = changes.fare - now[changes.here] - now[changes.there]
        gone, come = board.load[changes.here] - changes.load, board.load[changes.there] + changes.load
        gone[:, 0] -= changes.less
        come[:, 0] += changes.more
        for brokers, loads in ((changes.here, gone), (changes.there, come)):
            cost += np.maximum(np.maximum(loads - upper[brokers], lower[brokers] - loads), 0.0) @ price
        first = int(np.argmin(cost))
        part, again = self._part_of[changes.first], barred[0, self._part_of[changes.first], changes.there]
        swapped = changes.second >= 0
        again[swapped] |= barred[0, self._part_of[changes.second[swapped]], changes.here[swapped]]
        again[changes.leads :] = barred[1, part[changes.leads :], changes.there[changes.leads :]]
        if again[first]:
            load = board.load.copy()
            load[changes.here[first]] = gone[first]
            load[changes.there[first]] = come[first]
            if self._score(load, board.copied + float(changes.fare[first])) < best - _SAME:
                return first
            cost = np.where(again, np.inf, cost)
        first = int(np.argmin(cost + rng.random(len(cost)) * 1e-6))
        return first if np.isfinite(cost[first]) else -1

    def _make(self, board: _Board, changes: Proposals, chosen: int, barred: Ints, until: int) -> None:
        """Make a change, and bar its undoing until a later step."""
        first, second = int(changes.first[chosen]), int(changes.second[chosen])
        here, there = int(changes.here[chosen]), int(changes.there[chosen])
        board.load[here] -= changes.load[chosen]
        board.load[there] += changes.load[chosen]
        board.load[here, 0] -= changes.less[chosen]
        board.load[there, 0] += changes.more[chosen]
        board.copied += float(changes.fare[chosen])
        if chosen >= changes.leads:
            board.leader[self._part_of[first]] = first
            barred[1, self._part_of[first], here] = until
            return
        for replica, old, new in ((first, here, there), (second, there, here)):
            if replica < 0:
                continue
            partition = self._part_of[replica]
            board.holder[replica] = new
            board.on[partition, old], board.on[partition, new] = False, True
            barred[0, partition, old] = until
