"""Closes idle connections: half-open ones, and those whose client does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.runtime.frames import NetworkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.clock import Clock, Timer

_CHECKS = 4


class Idle(NetworkError):
    """The connection was idle for too long."""


class IdleWatch:
    """Checks from time to time whether a mark has changed, at no cost to active connections."""

    def __init__(
        self, clock: Clock, limit_s: float, mark: Callable[[], object], hang_up: Callable[[Idle], object]
    ) -> None:
        """Calls `hang_up` when `mark` has been the same for `limit_s`, or up to a quarter longer. A mark of
        None may stay.
        """
        self._clock = clock
        self._limit_s = limit_s
        self._mark = mark
        self._hang_up = hang_up
        self._seen: object = None
        self._quiet = 0
        self._timer: Timer
        self._wait()

    def stop(self) -> None:
        self._timer.cancel()

    def _wait(self) -> None:
        self._timer = self._clock.call_later(self._limit_s / _CHECKS, self._look)

    def _look(self) -> None:
        seen = self._mark()
        self._quiet = self._quiet + 1 if seen is not None and seen == self._seen else 0
        self._seen = seen
        self._wait()
        if self._quiet >= _CHECKS:
            self._hang_up(Idle(f"nothing has moved for {self._limit_s:g} s"))
