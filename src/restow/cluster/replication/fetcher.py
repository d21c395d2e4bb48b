"""Follower fetching: one task per leader broker, for all partitions that follow it.

    full fetch ──► session ──► only what changed ──► …      a lost connection or session starts again

A fetch waits at the leader until there is data. Partitions added meanwhile go out in a second fetch, and its
arrival makes the leader answer the first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from restow.cluster.log.errors import LogError
from restow.cluster.replication.following import accept, find_back, next_fetch, truncate
from restow.cluster.replication.throttling import Brake
from restow.cluster.replication.values import INITIAL_EPOCH, NO_LEADER, NO_SESSION, FetchSpec
from restow.wire.batches import CorruptBatch
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.throttling import Throttle
    from restow.cluster.replication.values import (
        FetchAnswer,
        FetchPartition,
        LeaderClient,
        ReplicationConfig,
    )
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer
    from restow.wire.fetch import Fetched

log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.02
_LARGEST_EPOCH = 0x7FFFFFFF


class Follower:
    """A partition that is being fetched."""

    __slots__ = ("caught_up", "failures", "partition", "pause", "sent")

    def __init__(self, partition: HostedPartition, *, caught_up: bool) -> None:
        self.partition = partition
        self.sent: FetchPartition | None = None
        """The fetch that the leader knows, None if the partition is not in the session."""
        self.pause: Timer | None = None
        self.failures = 0
        self.caught_up = caught_up
        """Whether it had reached the leader's high watermark at the last response, or was in sync before."""


class Fetcher:
    """All fetching of this broker from one other broker."""

    def __init__(
        self,
        replica_id: int,
        client: LeaderClient,
        clock: Clock,
        config: ReplicationConfig,
        throttle: Throttle,
    ) -> None:
        self._replica_id = replica_id
        self._client = client
        self._clock = clock
        self._config = config
        self._throttle = throttle
        self._brake = Brake(throttle, clock, self._resume)
        self._followers: dict[TopicPartition, Follower] = {}
        self._paused = 0
        """Number of partitions that pause before their next fetch."""
        self._changed: dict[TopicPartition, None] = {}
        self._forgotten: dict[TopicPartition, None] = {}
        self._ignored: dict[TopicPartition, None] = {}
        """Partitions of which a response was ignored during a pause. The leader would not repeat it, so it
        has to forget them before they are fetched again.
        """
        self._session_id = NO_SESSION
        self._next_epoch = INITIAL_EPOCH
        self._refused_session = False
        self._calls: deque[asyncio.Task[FetchAnswer]] = deque()
        self._poked = False
        self._unsaid = False
        """Whether the fetches in flight lack something."""
        self._failures = 0
        self._awake = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(_report)

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to fetch."""
        return not self._followers

    def add(self, partition: HostedPartition) -> None:
        """Fetch the partition from now on; restart one that is already fetched."""
        self.remove(partition.topic_partition)
        in_sync = self._replica_id in partition.isr
        self._followers[partition.topic_partition] = Follower(partition, caught_up=in_sync)
        self._to_tell(partition.topic_partition)

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop fetching the partition."""
        follower = self._followers.pop(topic_partition, None)
        if follower is not None:
            if follower.pause is not None:
                follower.pause.cancel()
                self._paused -= 1
            self._brake.forget(topic_partition)
            self._ignored.pop(topic_partition, None)
            self._leave_session(topic_partition, follower)

    def end(self) -> asyncio.Future[Any]:
        """Stop at once. The future completes when nothing is in flight any more."""
        for topic_partition in tuple(self._followers):
            self.remove(topic_partition)
        self._brake.close()
        self._client.close()
        under_way = (self._task, *self._calls)
        for task in under_way:
            task.cancel()
        return asyncio.gather(*under_way, return_exceptions=True)

    def _to_tell(self, topic_partition: TopicPartition) -> None:
        self._changed[topic_partition] = None
        self._awake.set()
        self._poke_soon()

    def _poke_soon(self) -> None:
        if self._calls and not self._poked and self._session_id != NO_SESSION:
            self._poked = True
            asyncio.get_running_loop().call_soon(self._poke)

    def _poke(self) -> None:
        """Send a second fetch for new partitions while the first one waits."""
        self._poked = False
        if self._session_id != NO_SESSION and len(self._calls) == 1:
            self._unsaid = False
            self._send()
        else:
            self._unsaid = bool(self._calls)

    async def _run(self) -> None:
        while True:
            if not self._calls:
                if self._paused == len(self._followers):
                    self._awake.clear()
                    await self._awake.wait()
                self._send()
            call = self._calls[0]
            try:
                answer = await call
            except OSError as error:
                await self._lost(error)
                continue
            self._calls.popleft()
            self._failures = 0
            if answer.error_code:
                await self._lost(ErrorCode.of(answer.error_code).message)
                continue
            self._take_session(answer)
            for topic_partition, fetched in answer.partitions.items():
                self._take(topic_partition, fetched)
            if self._unsaid:
                self._poke()

    async def _lost(self, reason: object) -> None:
        """Start a new session after a growing pause."""
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        self._calls.clear()
        log.info("broker %s starts a new fetch session: %s", self._replica_id, reason)
        self._session_id = NO_SESSION
        self._next_epoch = INITIAL_EPOCH
        pause_s = self._pause_s(self._failures)
        self._failures += 1
        await self._clock.sleep(pause_s)

    def _pause_s(self, failures: int) -> float:
        """Return the pause. It starts short, as a leader often gets its partition after its followers."""
        return min(_FIRST_PAUSE_S * 2.0 ** min(failures, 30), self._config.fetch_backoff_ms / 1000)

    def _take_session(self, answer: FetchAnswer) -> None:
        if self._session_id == NO_SESSION:
            self._session_id = answer.session_id
            self._refused_session = answer.session_id == NO_SESSION
            if not self._refused_session:
                self._next_epoch = INITIAL_EPOCH + 1

    def _send(self) -> None:
        self._calls.append(asyncio.get_running_loop().create_task(self._client.fetch(self._request())))
        if self._changed:
            self._poke_soon()

    def _request(self) -> FetchSpec:
        """Return a fetch of all partitions, or within a session of those that changed."""
        in_session = self._session_id != NO_SESSION
        wanted: dict[TopicPartition, FetchPartition] = {}
        asked_for = tuple(self._changed if in_session else self._followers)
        later: list[TopicPartition] = []
        most = self._config.fetch_max_bytes
        slow = self._throttle.is_set
        if slow:
            for topic_partition, follower in self._brake.hold(asked_for, self._followers).items():
                follower.sent = None
                self._forgotten[topic_partition] = None
        for topic_partition in asked_for:
            known = self._followers.get(topic_partition)
            if known is None or known.pause is not None:
                continue
            if in_session and topic_partition in self._ignored:
                later.append(topic_partition)
                continue
            self._forgotten.pop(topic_partition, None)
            share = self._brake.share(topic_partition, most) if slow else most
            fetch = next_fetch(known.partition, share)
            if not in_session or fetch != known.sent:
                wanted[topic_partition] = known.sent = fetch
        self._changed = dict.fromkeys(later)
        forgotten = tuple(self._forgotten) if in_session else ()
        self._forgotten.clear()
        self._ignored.clear()
        epoch = self._next_epoch
        if in_session:
            self._next_epoch = 1 if epoch == _LARGEST_EPOCH else epoch + 1
        waits = in_session or self._refused_session
        return FetchSpec(
            partitions=wanted,
            replica_id=self._replica_id,
            max_wait_ms=self._config.fetch_wait_max_ms if waits else 0,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._config.fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=epoch,
            forgotten=forgotten,
        )

    def _take(self, topic_partition: TopicPartition, fetched: Fetched) -> None:
        """Apply a response if it is for the current epoch and offset, not outdated or repeated."""
        follower = self._followers.get(topic_partition)
        if follower is None:
            return
        if follower.pause is not None:
            if topic_partition in self._forgotten:
                self._ignored[topic_partition] = None
            return
        if follower.sent is None:
            return
        partition = follower.partition
        sent = follower.sent
        if sent.leader_epoch != partition.leader_epoch:
            return
        if sent.offset != partition.log.end_offset:
            if not fetched.error_code and fetched.diverging_epoch is None:
                partition.follow_watermark(fetched.high_watermark)
            return
        try:
            done = self._apply(partition, fetched)
        except (LogError, CorruptBatch) as error:
            log.warning("%s could not apply its leader's response: %s", topic_partition, error)
            done = False
        if done:
            follower.failures = 0
            follower.caught_up = partition.log.end_offset >= fetched.high_watermark
            self._changed[topic_partition] = None
        elif topic_partition in self._followers:
            self._pause(topic_partition, follower, self._pause_s(follower.failures))
            follower.failures += 1

    def _apply(self, partition: HostedPartition, fetched: Fetched) -> bool:
        """Return whether there may be more to fetch."""
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return find_back(partition.log, fetched)
        if fetched.error_code:
            return False
        if fetched.diverging_epoch is not None:
            return truncate(partition, fetched.diverging_epoch)
        accept(partition, fetched)
        if fetched.records and self._throttle.covers(partition.topic_partition):
            self._throttle.note(len(fetched.records))
        return True

    def _pause(self, topic_partition: TopicPartition, follower: Follower, seconds: float) -> None:
        self._leave_session(topic_partition, follower)
        follower.pause = self._clock.call_later(seconds, lambda: self._resume(topic_partition, follower))
        self._paused += 1

    def _resume(self, topic_partition: TopicPartition, follower: Follower) -> None:
        follower.pause = None
        self._paused -= 1
        if self._followers.get(topic_partition) is follower:
            self._to_tell(topic_partition)

    def _leave_session(self, topic_partition: TopicPartition, follower: Follower) -> None:
        if follower.sent is not None:
            follower.sent = None
            self._forgotten[topic_partition] = None


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a fetcher has failed", exc_info=error)


class Fetchers:
    """One broker's fetchers, by leader. An idle one is closed."""

    def __init__(
        self,
        broker_id: int,
        fetch_from: Callable[[int], LeaderClient],
        clock: Clock,
        config: ReplicationConfig,
        throttle: Throttle,
    ) -> None:
        self._fetch_from = fetch_from
        self._make = partial(Fetcher, broker_id, clock=clock, config=config, throttle=throttle)
        self._fetchers: dict[int, Fetcher] = {}
        self._leader_of: dict[TopicPartition, int] = {}
        self._ending: set[asyncio.Future[Any]] = set()

    def follow(self, partitions: Iterable[HostedPartition]) -> None:
        """Fetch each partition from its current leader, if there is one, and from no other."""
        abandoned = set()
        for partition in partitions:
            topic_partition = partition.topic_partition
            leader = partition.order.leader
            former = self._leader_of.get(topic_partition)
            if former is not None and former != leader:
                self._fetchers[former].remove(topic_partition)
                abandoned.add(former)
            if leader == NO_LEADER:
                self._leader_of.pop(topic_partition, None)
                continue
            self._leader_of[topic_partition] = leader
            if leader not in self._fetchers:
                self._fetchers[leader] = self._make(client=self._fetch_from(leader))
            self._fetchers[leader].add(partition)
        self._close_idle(abandoned)

    def unfollow(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching these partitions."""
        abandoned = set()
        for topic_partition in topic_partitions:
            leader = self._leader_of.pop(topic_partition, None)
            if leader is not None:
                self._fetchers[leader].remove(topic_partition)
                abandoned.add(leader)
        self._close_idle(abandoned)

    async def close(self) -> None:
        """Stop all fetchers."""
        await asyncio.gather(*(fetcher.end() for fetcher in self._fetchers.values()), *self._ending)
        self._fetchers.clear()
        self._leader_of.clear()

    def _close_idle(self, leaders: Iterable[int]) -> None:
        for leader in leaders:
            if self._fetchers[leader].is_idle:
                ending = self._fetchers.pop(leader).end()
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)
