"""Compile the loops of the search, and share random draws and grouping among them.

In a loop, each move sees the moves before it.

numba compiles them where it is installed (`restow[plan]`). It caches the compiled code beside the module or,
where that is not writable, in the user's cache folder; only the first plan on a machine waits for the
compiler. Without numba the interpreter runs the same functions: the same plan, later.

Large arrays are allocated outside the loops: numpy uses huge pages, which is much faster.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

try:
    from numba import __version__ as numba_version
    from numba import njit
    from numba.core.event import TimingListener, register
except ImportError:
    COMPILES = False
    _compiler: Any = None
else:
    COMPILES = True
    _compiler = TimingListener()  # type: ignore[no-untyped-call]
    register("numba:compile", _compiler)  # type: ignore[no-untyped-call]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.plan.search.problem import Ints


F = TypeVar("F", bound="Callable[..., object]")


def compiled(function: F) -> F:
    """Return the function, compiled at its first call for the types of its arguments."""
    if not COMPILES:
        return function
    dispatcher = njit(cache=True, nogil=True)(function)
    _drop_stale_cache(dispatcher.stats.cache_path)
    return cast("F", dispatcher)


@cache
def _drop_stale_cache(folder: str) -> None:
    """Remove compiled code of other sources: numba fails on an index that names a class renamed since."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    facts = [numba_version, *(f"{each.name} {each.stat().st_mtime_ns}" for each in sources)]
    stamp, current = Path(folder) / "restow-sources", "\n".join(facts)
    with suppress(OSError):
        if stamp.exists() and stamp.read_text(encoding="utf-8") == current:
            return
        for old in Path(folder).glob("*.nb[ic]"):
            old.unlink(missing_ok=True)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(current, encoding="utf-8")


def compiler_s() -> float:
    """Return how long this process has waited for the compiler, which the search's time limit excludes."""
    return cast("float", _compiler.duration) if COMPILES and _compiler.done else 0.0


@contextmanager
def as_if_compiled() -> Iterator[None]:
    """Let interpreted loops leave the process as compiled ones do.

    Compiled, unsigned numbers wrap around silently, and random numbers come from a generator of numba's own.
    """
    if COMPILES:
        yield
        return
    before = np.random.get_state()
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        np.random.set_state(before)


_FACTOR = np.uint64(6364136223846793005)
_TERM = np.uint64(1442695040888963407)
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)


@compiled
def begin(seed: int) -> np.uint64:
    """Return the state that a sequence of draws starts from."""
    return step(step(np.uint64(seed) ^ _TERM))


@compiled
def step(state: np.uint64) -> np.uint64:
    """Return the next state; `pick` reads a number off it."""
    return np.uint64(state * _FACTOR + _TERM)


@compiled
def pick(state: np.uint64, many: int) -> int:
    """Return a number from 0 to `many` - 1, with `many` below 2³², from the upper half of the state."""
    return np.int64(((state >> _HALF) * (np.uint64(many) & _LOWER)) >> _HALF)  # type: ignore[return-value]


def by_group(group: Ints, many: int) -> tuple[Ints, Ints]:
    """Return where each group begins, and all members, group by group and in their order."""
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
