"""Bring brokers into their bands that are slightly out of them.

First with replicas that move anyway: they go somewhere else, or two swap places, and no more bytes are
copied. Then with replicas that did not move so far, or by keeping one at home that did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import begin, compiled, pick, step
from restow.plan.search.rules import change, has_room, may_go, transfer, wrong

if TYPE_CHECKING:
    from restow.plan.search.problem import Bools, Floats, Ints, SearchSpace, SearchState

_NOTHING = 1e-19
# A change must reduce its broker's distance from the bands by this share.
_WORTH = 1e-3
# A change that reduces it by this much is accepted, once a few have been tried.
_GOOD = 0.02
_AT_A_TIME = 128
# At most this many of a broker's replicas are examined.
_OWN = 4_096


class Task(NamedTuple):
    """The allowed changes, and their costs."""

    home: Ints
    candidates: Ints
    """Replicas that may change places."""
    receives: Bools
    cost: float
    """The cost of copying an average broker's bytes, relative to the distances; going home saves as much."""
    drawn: int
    """How many changes of each kind are tried for a broker before giving up."""


class Lists(NamedTuple):
    """The candidates of each broker as linked lists; a candidate is its index in the list of all."""

    first: Ints
    """By broker: its first candidate, -1 for none."""
    after: Ints
    """By candidate: the next one, -1 for the last."""
    before: Ints
    """By candidate: the one before it."""


@compiled
def mend(space: SearchSpace, state: SearchState, task: Task, rounds: int, seed: int) -> float:
    """Move candidates while that helps the worst broker; return the distance that remains."""
    brokers = state.load.shape[0]
    off = np.empty(brokers)
    for broker in range(brokers):
        off[broker] = wrong(state.load, space.lower, space.upper, broker)
    stuck = np.zeros(brokers, np.bool_)
    lists = _lists(state, task, brokers)
    own = np.empty(_OWN, np.int64)
    draw = begin(seed)
    for _ in range(rounds if len(task.candidates) else 0):
        broker = _worst(off, stuck)
        if broker < 0:
            break
        count = _gather(lists, broker, own)
        draw = step(draw)
        comes, goes, other = _best_change(space, state, task, off, broker, own[:count], draw)
        if other < 0:
            stuck[broker] = True
            continue
        if comes >= 0:
            transfer(space, state, task.candidates[comes], broker)
            _unlink(lists, comes, other)
            _link(lists, comes, broker)
        if goes >= 0:
            transfer(space, state, task.candidates[goes], other)
            _unlink(lists, goes, broker)
            _link(lists, goes, other)
        for touched in (broker, other):
            off[touched] = wrong(state.load, space.lower, space.upper, touched)
            stuck[touched] = False
    return float(off.sum())


@compiled
def _worst(off: Floats, stuck: Bools) -> int:
    """Return the broker furthest out of its bands that is not stuck, or -1."""
    found, most = -1, _NOTHING
    for broker in range(len(off)):
        if not stuck[broker] and off[broker] > most:
            found, most = broker, off[broker]
    return found


@compiled
def _best_change(
    space: SearchSpace, state: SearchState, task: Task, off: Floats, broker: int, own: Ints, draw: np.uint64
) -> tuple[int, int, int]:
    """Return the candidates that should come to this broker and go from it, -1 for none, and the other
    broker.

    Tries come in rounds of three: one comes, one goes, one comes for another. A few candidates are all tried;
    of many, some are drawn.
    """
    brokers, many, count = len(off), len(task.candidates), len(own)
    best_comes, best_goes, best_other, best_gain = -1, -1, -1, -off[broker] * _WORTH
    for turn in range(task.drawn):
        if turn % _AT_A_TIME == 0 and best_gain < -off[broker] * _GOOD:
            break
        for kind in range(3):
            comes, goes, other = -1, -1, -1
            draw = step(draw)
            if kind != 1:
                every = kind == 0 and many <= task.drawn
                comes = turn % many if every else pick(draw, many)
                other = state.holder[task.candidates[comes]]
            if kind != 0 and count:
                draw = step(draw)
                every = kind == 1 and count * brokers <= task.drawn
                goes = own[turn % count] if every else own[pick(draw, count)]
                if kind == 1:
                    draw = step(draw)
                    other = turn // count % brokers if every else pick(draw, brokers)
            if other < 0 or other == broker or (kind == 2 and goes < 0):
                continue
            gain = _gain(space, state, task, off, broker, other, comes, goes, best_gain)
            if gain < best_gain and _possible(space, state, task, broker, other, comes, goes):
                best_comes, best_goes, best_other, best_gain = comes, goes, other, gain
    return best_comes, best_goes, best_other


@compiled
def _gain(
    space: SearchSpace,
    state: SearchState,
    task: Task,
    off: Floats,
    broker: int,
    other: int,
    comes: int,
    goes: int,
    to_beat: float,
) -> float:
    """Return the improvement in distance and cost as a negative number; 0 or more if there is none."""
    coming = space.part_of[task.candidates[comes]] if comes >= 0 else -1
    going = space.part_of[task.candidates[goes]] if goes >= 0 else -1
    gain = change(space, state, broker, coming, going, off[broker])
    if gain >= to_beat and task.cost == 0.0:
        return 0.0
    gain += change(space, state, other, going, coming, off[other])
    if gain >= -off[broker] * _WORTH:
        return 0.0
    if task.cost > 0.0:
        if comes >= 0:
            gain += off[broker] * _fare(space, task, task.candidates[comes], other, broker)
        if goes >= 0:
            gain += off[broker] * _fare(space, task, task.candidates[goes], broker, other)
    return gain


@compiled
def _fare(space: SearchSpace, task: Task, replica: int, here: int, there: int) -> float:
    """Return the cost of moving a replica there from here; negative if it need not be copied any more."""
    if here == task.home[replica]:
        return task.cost * float(space.weight[space.part_of[replica], 0])
    if there == task.home[replica]:
        return -task.cost * float(space.weight[space.part_of[replica], 0])
    return 0.0


@compiled
def _possible(
    space: SearchSpace, state: SearchState, task: Task, broker: int, other: int, comes: int, goes: int
) -> bool:
    coming, going = -1, -1
    if comes >= 0:
        replica = task.candidates[comes]
        coming = space.part_of[replica]
        if not (task.receives[broker] or task.home[replica] == broker):
            return False
        if not may_go(space, state, replica, broker):
            return False
    if goes >= 0:
        replica = task.candidates[goes]
        going = space.part_of[replica]
        if going == coming or not (task.receives[other] or task.home[replica] == other):
            return False
        if not may_go(space, state, replica, other):
            return False
    return has_room(space, state, broker, coming, going) and has_room(space, state, other, going, coming)


@compiled
def _lists(state: SearchState, task: Task, brokers: int) -> Lists:
    many = len(task.candidates)
    lists = Lists(np.full(brokers, -1), np.empty(many, np.int64), np.empty(many, np.int64))
    for at in range(many - 1, -1, -1):
        _link(lists, at, state.holder[task.candidates[at]])
    return lists


@compiled
def _link(lists: Lists, at: int, broker: int) -> None:
    second = lists.first[broker]
    lists.after[at], lists.before[at] = second, -1
    if second >= 0:
        lists.before[second] = at
    lists.first[broker] = at


@compiled
def _unlink(lists: Lists, at: int, broker: int) -> None:
    before, after = lists.before[at], lists.after[at]
    if before >= 0:
        lists.after[before] = after
    else:
        lists.first[broker] = after
    if after >= 0:
        lists.before[after] = before


@compiled
def _gather(lists: Lists, broker: int, into: Ints) -> int:
    """Write the first candidates of a broker; return how many."""
    count, at = 0, lists.first[broker]
    while at >= 0 and count < len(into):
        into[count] = at
        count += 1
        at = lists.after[at]
    return count
