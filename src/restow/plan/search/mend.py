"""Bringing brokers into their bands that are still a little out of them.

First with what moves anyway: it may go somewhere else, or two may change places, and no byte more is copied.
Then, if that does not do it, with what did not move so far, or by leaving where it is something that did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import begin, compiled, pick, step
from restow.plan.search.rules import change, has_room, may_go, transfer, wrong

if TYPE_CHECKING:
    from restow.plan.search.problem import Bools, Floats, Ground, Ints, SearchState

_NOTHING = 1e-19
# A change must be worth this share of what is wrong with the broker that it is made for.
_WORTH = 1e-3
# One that takes away this much of it is good enough, once a few have been tried.
_GOOD = 0.02
_AT_A_TIME = 128
# Of what a broker has, no more than so many are looked at.
_OWN = 4_096


class Task(NamedTuple):
    """What may be changed, and what that costs."""

    home: Ints
    candidates: Ints
    """Replicas that may change places."""
    receives: Bools
    cost: float
    """What copying an average broker's bytes counts, in what is wrong; going home saves as much."""
    drawn: int
    """How many changes of each kind are tried for a broker before it is given up."""


class Lists(NamedTuple):
    """Which candidates each broker holds, as chains: candidates go by their place in the list of them."""

    first: Ints
    """Of each broker, -1 if it has none,"""
    after: Ints
    """of each candidate the one after it, -1 if it is the last,"""
    before: Ints
    """and the one before it."""


@compiled
def mend(ground: Ground, state: SearchState, task: Task, rounds: int, seed: int) -> float:
    """Change the places of candidates as long as that helps the worst broker; return what is still wrong."""
    brokers = state.load.shape[0]
    off = np.empty(brokers)
    for broker in range(brokers):
        off[broker] = wrong(state.load, ground.lower, ground.upper, broker)
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
        comes, goes, other = _best_change(ground, state, task, off, broker, own[:count], draw)
        if other < 0:
            stuck[broker] = True
            continue
        if comes >= 0:
            transfer(ground, state, task.candidates[comes], broker)
            _unlink(lists, comes, other)
            _link(lists, comes, broker)
        if goes >= 0:
            transfer(ground, state, task.candidates[goes], other)
            _unlink(lists, goes, broker)
            _link(lists, goes, other)
        for touched in (broker, other):
            off[touched] = wrong(state.load, ground.lower, ground.upper, touched)
            stuck[touched] = False
    return float(off.sum())


@compiled
def _worst(off: Floats, stuck: Bools) -> int:
    """The broker most out of its bands for which not everything has been tried, or -1."""
    found, most = -1, _NOTHING
    for broker in range(len(off)):
        if not stuck[broker] and off[broker] > most:
            found, most = broker, off[broker]
    return found


@compiled
def _best_change(
    ground: Ground, state: SearchState, task: Task, off: Floats, broker: int, own: Ints, draw: np.uint64
) -> tuple[int, int, int]:
    """Which candidate should come to this broker, which go from it, -1 for none; and from or to whom.

    Tries are made in rounds of three: one comes, one goes, one comes for another. Where there are few, each
    is tried; else they are drawn.
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
            gain = _gain(ground, state, task, off, broker, other, comes, goes, best_gain)
            if gain < best_gain and _possible(ground, state, task, broker, other, comes, goes):
                best_comes, best_goes, best_other, best_gain = comes, goes, other, gain
    return best_comes, best_goes, best_other


@compiled
def _gain(
    ground: Ground,
    state: SearchState,
    task: Task,
    off: Floats,
    broker: int,
    other: int,
    comes: int,
    goes: int,
    to_beat: float,
) -> float:
    """By how much less is wrong, and cheaper, as a negative number; 0 or more if it does not help."""
    coming = ground.part_of[task.candidates[comes]] if comes >= 0 else -1
    going = ground.part_of[task.candidates[goes]] if goes >= 0 else -1
    gain = change(ground, state, broker, coming, going, off[broker])
    if gain >= to_beat and task.cost == 0.0:
        return 0.0
    gain += change(ground, state, other, going, coming, off[other])
    if gain >= -off[broker] * _WORTH:
        return 0.0
    if task.cost > 0.0:
        if comes >= 0:
            gain += off[broker] * _fare(ground, task, task.candidates[comes], other, broker)
        if goes >= 0:
            gain += off[broker] * _fare(ground, task, task.candidates[goes], broker, other)
    return gain


@compiled
def _fare(ground: Ground, task: Task, replica: int, here: int, there: int) -> float:
    """What it costs to have a replica there instead of here; negative if it need not be copied any more."""
    if here == task.home[replica]:
        return task.cost * float(ground.weight[ground.part_of[replica], 0])
    if there == task.home[replica]:
        return -task.cost * float(ground.weight[ground.part_of[replica], 0])
    return 0.0


@compiled
def _possible(
    ground: Ground, state: SearchState, task: Task, broker: int, other: int, comes: int, goes: int
) -> bool:
    coming, going = -1, -1
    if comes >= 0:
        replica = task.candidates[comes]
        coming = ground.part_of[replica]
        if not (task.receives[broker] or task.home[replica] == broker):
            return False
        if not may_go(ground, state, replica, broker):
            return False
    if goes >= 0:
        replica = task.candidates[goes]
        going = ground.part_of[replica]
        if going == coming or not (task.receives[other] or task.home[replica] == other):
            return False
        if not may_go(ground, state, replica, other):
            return False
    return has_room(ground, state, broker, coming, going) and has_room(ground, state, other, going, coming)


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
    """The first candidates that a broker holds; says how many."""
    count, at = 0, lists.first[broker]
    while at >= 0 and count < len(into):
        into[count] = at
        count += 1
        at = lists.after[at]
    return count
