"""Hanging up on connections on which nothing moves any more: half-open ones, and readers that do not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.runtime.frames import NetworkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.clock import Clock, Timer

_CHECKS = 4


class Idle(NetworkError):
    """Nothing has moved on the connection for as long as it may."""


class IdleWatch:
    """Looks from time to time whether a mark has changed; what moves pays nothing for being watched."""

    def __init__(
        self, clock: Clock, limit_s: float, mark: Callable[[], object], hang_up: Callable[[Idle], object]
    ) -> None:
        """`hang_up` hears when `mark` has been the same for `limit_s`, or up to a quarter longer; None is a
        mark that may stay.
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
