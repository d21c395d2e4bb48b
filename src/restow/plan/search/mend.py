"""Bring brokers into their bands that are slightly out of them.

First with replicas that move anyway: they go somewhere else, or two swap places, and no more bytes are
copied. Then with replicas that did not move so far, or by keeping one at home that did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import begin, compiled, pick, step
from restow.plan.search.rules import change, has_room, may_go, own_at, transfer, wrong

if TYPE_CHECKING:
    from restow.plan.search.problem import Bools, Floats, Ints, SearchSpace, SearchState

_NOTHING = 1e-19
# A change must reduce its broker's distance from the bands by this share.
_WORTH = 1e-3
# A change that reduces it by this much is accepted, once a few have been tried.
_GOOD = 0.02
_AT_A_TIME = 128
# So many more candidates than at first can be listed for a broker, and this share.
_MORE, _MORE_SHARE = 256, 4


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
    """The candidates of each broker, one list after the other; a candidate is its index in the list of all.

    A candidate that finds no place in its broker's list is not listed: it is not among those that go.
    """

    first: Ints
    """By broker: where its list begins; one more for the end of the last."""
    many: Ints
    """By broker: how many are listed."""
    listed: Ints
    place: Ints
    """By candidate: its place in `listed`, -1 if it has none."""


@compiled
def mend(space: SearchSpace, state: SearchState, task: Task, rounds: int, seed: int) -> float:
    """Move candidates while that helps the worst broker; return the distance that remains."""
    brokers = state.load.shape[0]
    off = np.empty(brokers)
    for broker in range(brokers):
        off[broker] = wrong(state.load, space.lower, space.upper, broker)
    stuck = np.zeros(brokers, np.bool_)
    lists = _lists(state, task, brokers)
    draw = begin(seed)
    for _ in range(rounds if len(task.candidates) else 0):
        broker = _worst(off, stuck)
        if broker < 0:
            break
        own = lists.listed[lists.first[broker] : lists.first[broker] + lists.many[broker]]
        draw = step(draw)
        comes, goes, other = _best_change(space, state, task, off, broker, own, draw)
        if other < 0:
            stuck[broker] = True
            continue
        if comes >= 0:
            transfer(space, state, task.candidates[comes], broker)
            _strike(lists, comes, other)
            _list(lists, comes, broker)
        if goes >= 0:
            transfer(space, state, task.candidates[goes], other)
            _strike(lists, goes, broker)
            _list(lists, goes, other)
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
    of many, neighbours from a random start, because memory is read in order then.
    """
    brokers, many, count = len(off), len(task.candidates), len(own)
    best_comes, best_goes, best_other, best_gain, start = -1, -1, -1, -off[broker] * _WORTH, 0
    for turn in range(task.drawn):
        if turn % _AT_A_TIME == 0 and best_gain < -off[broker] * _GOOD:
            break
        if turn % _AT_A_TIME == 0:
            draw = step(draw)
            start = 0 if many <= task.drawn else pick(draw, many)
        for kind in range(3):
            comes, goes, other = -1, -1, -1
            draw = step(draw)
            if kind != 1:
                every = kind == 0 or many > task.drawn
                comes = (start + turn) % many if every else pick(draw, many)
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
    more = _own(space, task, comes, goes, broker)
    gain = change(space, state, broker, coming, going, more, off[broker])
    if gain >= to_beat and task.cost == 0.0:
        return 0.0
    gain += change(space, state, other, going, coming, _own(space, task, goes, comes, other), off[other])
    if gain >= -off[broker] * _WORTH:
        return 0.0
    if task.cost > 0.0:
        if comes >= 0:
            gain += off[broker] * _fare(space, task, task.candidates[comes], other, broker)
        if goes >= 0:
            gain += off[broker] * _fare(space, task, task.candidates[goes], broker, other)
    return gain


@compiled
def _own(space: SearchSpace, task: Task, comes: int, goes: int, broker: int) -> float:
    """Return what own sizes add on a broker when one candidate comes and another goes; -1 for none."""
    if len(space.own) == 0:
        return 0.0
    coming = task.candidates[comes] if comes >= 0 else -1
    going = task.candidates[goes] if goes >= 0 else -1
    return own_at(space, coming, broker) - own_at(space, going, broker)


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
    more, less = _own(space, task, comes, goes, broker), _own(space, task, goes, comes, other)
    return has_room(space, state, broker, coming, going, more) and has_room(
        space, state, other, going, coming, less
    )


@compiled
def _lists(state: SearchState, task: Task, brokers: int) -> Lists:
    many = len(task.candidates)
    first = np.zeros(brokers + 1, np.int64)
    for candidate in task.candidates:
        first[state.holder[candidate] + 1] += 1
    for broker in range(brokers):
        first[broker + 1] += first[broker] + first[broker + 1] // _MORE_SHARE + _MORE
    lists = Lists(
        first, np.zeros(brokers, np.int64), np.empty(first[brokers], np.int64), np.empty(many, np.int64)
    )
    for at in range(many):
        _list(lists, at, state.holder[task.candidates[at]])
    return lists


@compiled
def _list(lists: Lists, at: int, broker: int) -> None:
    place = lists.first[broker] + lists.many[broker]
    if place >= lists.first[broker + 1]:
        lists.place[at] = -1
        return
    lists.listed[place] = at
    lists.place[at] = place
    lists.many[broker] += 1


@compiled
def _strike(lists: Lists, at: int, broker: int) -> None:
    place = lists.place[at]
    if place < 0:
        return
    lists.many[broker] -= 1
    last = lists.listed[lists.first[broker] + lists.many[broker]]
    lists.listed[place] = last
    lists.place[last] = place
