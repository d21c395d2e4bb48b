"""Compiled loops, and what all of them use: draws by a seed, and sorting into groups.

The search takes one move after the other, each seeing what those before it did.

numba's own cache keeps the compiled code beside the module or, where that cannot be written, in the user's
cache folder; only the first plan on a machine waits for the compiler.

Large arrays are made outside and filled inside: numpy asks for huge pages, which are there much sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.event import TimingListener, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Ints


F = TypeVar("F", bound="Callable[..., object]")

_compiler = TimingListener()  # type: ignore[no-untyped-call]
register("numba:compile", _compiler)  # type: ignore[no-untyped-call]


def compiled(function: F) -> F:
    """The same function, compiled at its first call for the types it is called with."""
    return cast("F", njit(cache=True, nogil=True)(function))


def compiler_s() -> float:
    """For how long this process has waited for the compiler, which no limit of a search's time means."""
    return cast("float", _compiler.duration) if _compiler.done else 0.0


_FACTOR = np.uint64(6364136223846793005)
_TERM = np.uint64(1442695040888963407)
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)


@compiled
def begin(seed: int) -> np.uint64:
    """The state that a row of draws starts from."""
    return step(step(np.uint64(seed) ^ _TERM))


@compiled
def step(state: np.uint64) -> np.uint64:
    """The next state; `pick` reads a number off it."""
    return np.uint64(state * _FACTOR + _TERM)


@compiled
def pick(state: np.uint64, many: int) -> int:
    """One of so many, fewer than 2³², from 0 on: the upper half of the state as a share of them."""
    return np.int64(((state >> _HALF) * (np.uint64(many) & _LOWER)) >> _HALF)  # type: ignore[return-value]


def by_group(group: Ints, many: int) -> tuple[Ints, Ints]:
    """Where each of so many groups begins, and the numbers of all, group by group and in their order."""
    begins, order = np.zeros(many + 1, np.int64), np.empty(len(group), np.int64)
    _sort(group, many, begins, order)
    return begins, order


@compiled
def _sort(group: Ints, many: int, begins: Ints, order: Ints) -> None:
    for each in group:
        begins[each + 1] += 1
    for each in range(many):
        begins[each + 1] += begins[each]
    free = begins.copy()
    for number in range(len(group)):
        each = group[number]
        order[free[each]] = number
        free[each] += 1
