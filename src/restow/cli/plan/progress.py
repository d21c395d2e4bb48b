"""One line on a terminal while the search works: what the plan copies so far, and how near that is."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from restow.runtime.clock import SystemClock
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.plan.judge.bound import Bound
    from restow.plan.search import Progress

_BETWEEN_S = 0.2
_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line() -> Iterator[Callable[[Progress, Bound], None] | None]:
    """Return whom to tell how far the search is; None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    clock, last_s = SystemClock(), float("-inf")

    def tell(progress: Progress, bound: Bound) -> None:
        nonlocal last_s
        if clock.monotonic_s() - last_s >= _BETWEEN_S:
            last_s = clock.monotonic_s()
            sys.stderr.write(_CLEAR + text_of(progress, bound))
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if last_s > float("-inf"):
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def text_of(progress: Progress, bound: Bound) -> str:
    """Say how far the search is."""
    copied = human_bytes(int(progress.copied_bytes))
    least = bound.least_bytes
    gap = f", {progress.copied_bytes / least:.3f} × the least possible so far" if least > 0 else ""
    out = progress.out_of_band
    state = f"{out:.3g} average loads out of band" if out > 1e-9 else "replicas in band"
    return f"{progress.stage}: {copied} to copy{gap}, {state} (ctrl-C takes the best plan so far)"
