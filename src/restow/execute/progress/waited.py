"""Count the time in which a run could move nothing, and why, to tell it beside the prediction error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.stuck import Stall
from restow.sizes import human_duration

if TYPE_CHECKING:
    from restow.execute.progress.progress import ProgressReport

_WORTH_TELLING_S = 2.0
_STANDS_STILL_S = 5.0
"""Waits for a throttle or an election are shorter."""


class WaitedTime:
    """The seconds between looks at the cluster in which nothing could move, by reason."""

    def __init__(self) -> None:
        self._since_s = self._moved_s = 0.0
        self._reason: str | None = None
        self._seconds: dict[str, float] = {}

    def see(self, at_s: float, reason: str | None) -> None:
        """Note why nothing can move from now on; None if something can."""
        if self._reason is not None:
            self._seconds[self._reason] = self._seconds.get(self._reason, 0.0) + at_s - self._since_s
        else:
            self._moved_s = at_s
        self._since_s, self._reason = at_s, reason

    def stands_still(self, at_s: float) -> bool:
        """Whether nothing could move for so long that the end cannot be foretold."""
        return self._reason is not None and at_s - self._moved_s >= _STANDS_STILL_S

    @property
    def told(self) -> str:
        """Return the time with its main reason, as `20 s: orders-0: it has no leader`; empty if short."""
        seconds = sum(self._seconds.values())
        if seconds < _WORTH_TELLING_S:
            return ""
        reason = max(self._seconds, key=lambda each: self._seconds[each])
        return f"{human_duration(seconds)}: {reason}"


def why_nothing_copies(report: ProgressReport) -> str | None:
    """Say why the first replica under way stands still; None if one of them makes progress."""
    copying = sum(not each.in_sync for each in report.copying)
    still = [each for each in report.still if each.stall is not Stall.SLOW]
    return str(still[0]) if still and len(still) >= copying else None
