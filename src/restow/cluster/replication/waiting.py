"""Requests that wait for partitions to reach an offset."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.model import TopicPartition


class Pending:
    """One request that waits until several partitions reach their offset or fail."""

    def __init__(self, waiting_for: set[TopicPartition]) -> None:
        self._open = waiting_for
        self.codes: dict[TopicPartition, ErrorCode] = {}
        """The results so far."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, topic_partition: TopicPartition, code: ErrorCode) -> None:
        """Set a partition's result. Only the first one counts."""
        if topic_partition in self._open:
            self._open.discard(topic_partition)
            self.codes[topic_partition] = code
            if not self._open and not self.done.done():
                self.done.set_result(None)

    def time_out(self) -> None:
        """Fail the partitions without a result with a timeout."""
        for topic_partition in tuple(self._open):
            self.settle(topic_partition, ErrorCode.REQUEST_TIMED_OUT)


class OffsetQueue:
    """Requests that wait for one partition to reach an offset, the smallest first."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._waiting: list[tuple[int, int, Pending]] = []
        self._ticket = count()

    def wait(self, offset: int, pending: Pending) -> None:
        heappush(self._waiting, (offset, next(self._ticket), pending))

    def is_due(self, offset: int) -> bool:
        """Return whether a request waits for at most this offset."""
        return bool(self._waiting) and self._waiting[0][0] <= offset

    def reach(self, offset: int, code: ErrorCode) -> None:
        """Settle the requests that wait for at most this offset."""
        while self.is_due(offset):
            heappop(self._waiting)[2].settle(self._topic_partition, code)

    def fail(self, code: ErrorCode) -> None:
        """Fail all waiting requests."""
        waiting, self._waiting = self._waiting, []
        for _, _, pending in waiting:
            pending.settle(self._topic_partition, code)
