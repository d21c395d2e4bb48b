"""Partitions to look at when their time has come, and none before: one heap, one timer."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.cluster.replication.partition import HostedPartition
    from restow.runtime.clock import Clock, Timer


class Reviews:
    """When the ISR of which partition is to be reviewed. Only partitions with laggards are in here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, HostedPartition]] = []
        self._ticket = count()
        self._timer: Timer | None = None
        self._timer_s = 0.0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, partition: HostedPartition, due_s: float) -> None:
        """Call `partition.review_isr` at that time."""
        heappush(self._due, (due_s, next(self._ticket), partition))
        self._arm()

    def close(self) -> None:
        """No more reviews."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if not self._due:
            return
        due_s = self._due[0][0]
        if self._timer is not None:
            if self._timer_s <= due_s:
                return
            self._timer.cancel()
        self._timer_s = due_s
        self._timer = self._clock.call_later(due_s - self._clock.monotonic_s(), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now_s = self._clock.monotonic_s()
        while self._due and self._due[0][0] <= now_s:
            heappop(self._due)[2].review_isr()
        self._arm()
