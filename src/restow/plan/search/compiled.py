"""Compiled loops: the search takes one move after the other, each seeing what those before it did.

numba's own cache keeps the compiled code beside the module or, where that cannot be written, in the user's
cache folder; only the first plan on a machine waits for the compiler.

Large arrays are made outside and filled inside: numpy asks for huge pages, which are there much sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from numba import njit
from numba.core.event import TimingListener, register

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")

_compiler = TimingListener()  # type: ignore[no-untyped-call]
register("numba:compile", _compiler)  # type: ignore[no-untyped-call]


def compiled(function: F) -> F:
    """The same function, compiled at its first call for the types it is called with."""
    return cast("F", njit(cache=True, nogil=True)(function))


def compiler_s() -> float:
    """For how long this process has waited for the compiler, which no limit of a search's time means."""
    return cast("float", _compiler.duration) if _compiler.done else 0.0
