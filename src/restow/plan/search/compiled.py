"""Compile the loops of the search, and share random draws and grouping among them.

In a loop, each move sees the moves before it.

numba compiles them where it is installed (`restow[plan]`). It caches the compiled code beside the module or,
where that is not writable, in the user's cache folder; only the first plan on a machine waits for the
compiler. Without numba the interpreter runs the same functions: the same plan, later. It also runs them for a
small cluster, because importing numba would take longer than its whole search.

Large arrays are allocated outside the loops: numpy uses huge pages, which is much faster.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, update_wrapper
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.plan.search.problem import Ints


F = TypeVar("F", bound="Callable[..., object]")

COMPILES = find_spec("numba") is not None
"""Whether numba is installed. It is imported when the first loop is compiled."""
FEW = 200
"""A cluster of so many replicas is planned sooner without the compiler than numba is imported."""
_interpreting: ContextVar[bool] = ContextVar("_interpreting", default=False)
_COUNTED = 20_000


def compiled(function: F) -> F:
    """Return the function, compiled at its first call for the types of its arguments."""
    return cast("F", _Loop(function)) if COMPILES else function


class _Loop:
    """A function that numba compiles at its first call, unless the interpreter is to run it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.py_func = function
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: object) -> object:
        return (self.py_func if _interpreting.get() else self.fast)(*arguments)

    @property
    def fast(self) -> Any:
        """The compiled function."""
        if self._dispatcher is None:
            from numba import njit

            _watch_compiler()
            # A call would count references to each array in its tuples, which takes longer than most loops.
            self._dispatcher = njit(cache=True, nogil=True, forceinline=True)(self.py_func)
            _drop_stale_cache(self._dispatcher.stats.cache_path)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The name by which numba asks what this is, where another loop calls it."""
        return self.fast._numba_type_


@cache
def _watch_compiler() -> Any:
    """Return the stopwatch that runs while the compiler does."""
    from numba.core.event import TimingListener, register

    stopwatch = TimingListener()  # type: ignore[no-untyped-call]
    register("numba:compile", stopwatch)  # type: ignore[no-untyped-call]
    return stopwatch


@cache
def _drop_stale_cache(folder: str) -> None:
    """Remove compiled code of other sources: numba fails on an index that names a class renamed since."""
    from numba import __version__ as numba_version

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
    if not _watch_compiler.cache_info().currsize:
        return 0.0
    stopwatch = _watch_compiler()
    return cast("float", stopwatch.duration) if stopwatch.done else 0.0


@contextmanager
def as_if_compiled(few: bool = False) -> Iterator[None]:
    """Let interpreted loops leave the process as compiled ones do; interpret all of them if there are `few`.

    Compiled, unsigned numbers wrap around silently, and random numbers come from a generator of numba's own.
    """
    if COMPILES and not few:
        yield
        return
    before = np.random.get_state()
    mode = _interpreting.set(True)
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        _interpreting.reset(mode)
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
    if len(group) <= _COUNTED:
        np.cumsum(np.bincount(group, minlength=many), out=begins[1:])
        return begins, np.argsort(group, kind="stable")
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
