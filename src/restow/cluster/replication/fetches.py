"""One fetch or a fetch session: its partitions, the pending ones among them, and the wait for data.

Partitions report changes to their fetches. So a fetch within a session looks only at changed partitions, and
ten thousand idle ones cost nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.replication.replica_selection import sent_to
from restow.cluster.replication.throttling import Allowance
from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import Fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.throttling import Throttle
    from restow.cluster.replication.values import FetchPartition, FetchSpec
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock

    ChooseReplica: TypeAlias = "Callable[[HostedPartition, str, int], int | None]"

UNTOLD = -1


class FetchedPartition:
    """A partition of a fetch, and its last response."""

    __slots__ = ("request", "start_offset", "watermark")

    def __init__(self, request: FetchPartition) -> None:
        self.request = request
        self.watermark = UNTOLD
        """The high watermark of the last response. UNTOLD after an error, so that the next one has it."""
        self.start_offset = UNTOLD


class Look:
    """The result of one pass over the partitions."""

    __slots__ = ("allowance", "exhausted", "found", "seen", "size", "urgent")

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance
        """A follower's share of the quota, None without a quota."""
        self.exhausted: list[TopicPartition] = []
        """Partitions that were read to their end, with no further news after this response."""
        self.found: dict[TopicPartition, Fetched] = {}
        self.seen: list[HostedPartition] = []
        self.size = 0
        self.urgent = False


class Fetching:
    """The partitions of a fetch or a fetch session."""

    def __init__(self, replica_id: int) -> None:
        self.replica_id = replica_id
        self.committed_only = False
        self.wanted: dict[TopicPartition, FetchedPartition] = {}
        self._news: dict[TopicPartition, None] = {}
        """Partitions that may have something to return, the longest unanswered first."""
        self._watched: dict[TopicPartition, HostedPartition] = {}
        self._waiting: asyncio.Future[None] | None = None
        self._missing = 0
        """Bytes still missing to end the wait."""
        self._is_hurried = False
        """Whether the wait was ended before the data came."""
        self._held_back: set[TopicPartition] = set()
        """Partitions with data that waits for room in a quota."""

    def update(self, spec: FetchSpec) -> None:
        """Apply the partitions that a request adds, changes or removes."""
        self.committed_only = spec.committed_only
        for topic_partition, request in spec.partitions.items():
            known = self.wanted.get(topic_partition)
            if known is None:
                self.wanted[topic_partition] = FetchedPartition(request)
            else:
                before = known.request
                if before.leader_epoch != request.leader_epoch or before.offset == request.offset:
                    known.watermark = UNTOLD  # it asks anew, so it may not have taken the last response
                known.request = request
            self._news[topic_partition] = None
        for topic_partition in spec.forgotten:
            self.wanted.pop(topic_partition, None)
            self._news.pop(topic_partition, None)
            self._unwatch(topic_partition)

    async def answer(
        self,
        spec: FetchSpec,
        find: Callable[[TopicPartition], HostedPartition | ErrorCode],
        choose: ChooseReplica,
        clock: Clock,
        throttle: Throttle,
        *,
        incremental: bool,
        is_session: bool,
    ) -> dict[TopicPartition, Fetched]:
        """Read, wait if there is too little data, and read again."""
        self.hurry()
        look = self._look(spec, find, choose, throttle, incremental=incremental)
        enough = look.urgent or look.size >= spec.min_bytes or spec.max_wait_ms <= 0
        if is_session or not enough:
            self._watch(look.seen)
        end_s = clock.monotonic_s() + spec.max_wait_ms / 1000 if not enough else 0.0
        while not enough:
            if incremental:
                self._forget_known(look)
            wait_s = end_s - clock.monotonic_s()
            if look.allowance is not None and look.allowance.held_back:
                self._held_back = look.allowance.held_back
                wait_s = min(wait_s, throttle.wait_s())
            try:
                await self._wait(spec.min_bytes - look.size, wait_s, clock)
            finally:
                self._held_back = set()
                if not is_session:
                    self.close()
            look = self._look(spec, find, choose, throttle, incremental=incremental)
            # What has come may belong to an open transaction. Other readers can read all of it.
            enough = not self.committed_only or self._is_hurried or look.urgent
            enough = enough or look.size >= spec.min_bytes or clock.monotonic_s() >= end_s
            if is_session or not enough:
                self._watch(look.seen)
        if look.allowance is not None:
            throttle.note(look.allowance.charged)
        return self._told(look, incremental=incremental)

    def _look(
        self,
        spec: FetchSpec,
        find: Callable[[TopicPartition], HostedPartition | ErrorCode],
        choose: ChooseReplica,
        throttle: Throttle,
        *,
        incremental: bool,
    ) -> Look:
        replica_id = self.replica_id
        allowance = Allowance(throttle, replica_id) if throttle.is_set and replica_id >= 0 else None
        look = Look(allowance)
        left = spec.max_bytes
        for topic_partition in tuple(self._news if incremental else self.wanted):
            request = self.wanted[topic_partition].request
            partition = find(topic_partition)
            if isinstance(partition, ErrorCode):
                look.found[topic_partition] = Fetched(topic_partition.partition, partition)
                look.urgent = True
                continue
            limit = left
            if allowance is not None and (allowed := allowance.limit(partition, request)) is not None:
                limit = min(left, allowed)
            elsewhere = spec.rack and choose(partition, spec.rack, request.offset)
            if isinstance(elsewhere, int):
                look.found[topic_partition] = sent_to(partition, elsewhere)
                look.urgent = True
                continue
            result = partition.fetch(
                request,
                replica_id,
                max(limit, 0),
                min_one=look.size == 0 and limit > 0,
                committed_only=self.committed_only,
                from_follower=spec.rack is not None,
            )
            look.found[topic_partition] = result
            look.seen.append(partition)
            if result.error_code or result.diverging_epoch is not None:
                look.urgent = True
                continue
            size = len(result.records or b"")
            look.size += size
            left -= size
            if allowance is not None:
                allowance.take(topic_partition, size)
            if size:
                self._news.pop(topic_partition, None)
                self._news[topic_partition] = None
            elif request.offset >= partition.readable_end(replica_id, committed_only=self.committed_only):
                look.exhausted.append(topic_partition)
        return look

    def _forget_known(self, look: Look) -> None:
        """Leave out of the next look what the client knows already, unless it changes."""
        for topic_partition in look.exhausted:
            wanted, result = self.wanted[topic_partition], look.found[topic_partition]
            if (result.high_watermark, result.log_start_offset) == (wanted.watermark, wanted.start_offset):
                self._news.pop(topic_partition, None)

    def _told(self, look: Look, *, incremental: bool) -> dict[TopicPartition, Fetched]:
        """Return the response; within a session only what the client does not know yet."""
        told = {}
        for topic_partition in look.exhausted:
            self._news.pop(topic_partition, None)
        for topic_partition, result in look.found.items():
            wanted = self.wanted.get(topic_partition)
            if wanted is None:
                continue
            plain = not result.error_code and result.diverging_epoch is None and result.preferred_replica < 0
            if (
                not incremental
                or not plain
                or result.records
                or result.high_watermark != wanted.watermark
                or result.log_start_offset != wanted.start_offset
            ):
                told[topic_partition] = result
                wanted.watermark = result.high_watermark if plain else UNTOLD
                wanted.start_offset = result.log_start_offset
        return told

    def tell_anew(self) -> None:
        """Forget what the client knows, because the last response was not sent."""
        for topic_partition, wanted in self.wanted.items():
            wanted.watermark = wanted.start_offset = UNTOLD
            self._news[topic_partition] = None

    async def _wait(self, missing: int, seconds: float, clock: Clock) -> None:
        self._missing = missing
        self._is_hurried = False
        self._waiting = waiting = asyncio.get_running_loop().create_future()
        timer = clock.call_later(seconds, lambda: _end(waiting))
        try:
            await waiting
        finally:
            timer.cancel()
            if self._waiting is waiting:
                self._waiting = None

    def hurry(self) -> None:
        """End the wait now."""
        self._is_hurried = True
        if self._waiting is not None:
            _end(self._waiting)

    def changed(self, topic_partition: TopicPartition, size: int) -> None:
        """Handle new readable bytes. 0 means a change that can wait, such as the high watermark."""
        self._news[topic_partition] = None
        if self._waiting is not None and topic_partition not in self._held_back:
            self._missing -= size
            if self._missing <= 0:
                _end(self._waiting)

    def upset(self, topic_partition: TopicPartition) -> None:
        """Handle a change that ends the wait, such as a new leader."""
        self._news[topic_partition] = None
        self.hurry()

    def _watch(self, partitions: Iterable[HostedPartition]) -> None:
        for partition in partitions:
            topic_partition = partition.topic_partition
            if self._watched.get(topic_partition) is not partition:
                self._unwatch(topic_partition)
                self._watched[topic_partition] = partition
                (partition.at_watermark if self.replica_id < 0 else partition.at_end)[self] = None

    def _unwatch(self, topic_partition: TopicPartition) -> None:
        if (partition := self._watched.pop(topic_partition, None)) is not None:
            partition.at_end.pop(self, None)
            partition.at_watermark.pop(self, None)

    def close(self) -> None:
        """Stop listening to the partitions."""
        for topic_partition in tuple(self._watched):
            self._unwatch(topic_partition)


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
