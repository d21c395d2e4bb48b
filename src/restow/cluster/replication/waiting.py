"""Requests that wait for something to happen to partitions: for acknowledgement, or for data."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Protocol

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.model import TopicPartition


class PartitionListener(Protocol):
    """Somebody who wants to know what happens to a partition."""

    def changed(self, topic_partition: TopicPartition, size: int) -> None:
        """So many bytes more can be read. 0: something else is new that can wait, such as the watermark."""

    def upset(self, topic_partition: TopicPartition) -> None:
        """The partition will answer otherwise than before, so that waiting is over."""


class Pending:
    """One request that waits until several partitions have come so far, or will not."""

    def __init__(self, waiting_for: set[TopicPartition]) -> None:
        self._open = waiting_for
        self.codes: dict[TopicPartition, ErrorCode] = {}
        """The outcome of those that are decided."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, topic_partition: TopicPartition, code: ErrorCode) -> None:
        """This partition is decided. Only the first word counts."""
        if topic_partition in self._open:
            self._open.discard(topic_partition)
            self.codes[topic_partition] = code
            if not self._open and not self.done.done():
                self.done.set_result(None)

    def time_out(self) -> None:
        """Who has not answered yet did not in time."""
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
        """Whether somebody waits for no more than this offset."""
        return bool(self._waiting) and self._waiting[0][0] <= offset

    def reach(self, offset: int, code: ErrorCode) -> None:
        """Who waits for no more than this offset has waited long enough."""
        while self.is_due(offset):
            heappop(self._waiting)[2].settle(self._topic_partition, code)

    def fail(self, code: ErrorCode) -> None:
        """Nobody will get what they wait for."""
        waiting, self._waiting = self._waiting, []
        for _, _, pending in waiting:
            pending.settle(self._topic_partition, code)
