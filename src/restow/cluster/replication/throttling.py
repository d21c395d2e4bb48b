"""Replication slowed down: what leaders and followers do about a quota.

    follower   leaves partitions out of its fetches while the quota is used up, unless it has caught up
    leader     answers with nothing of them while the quota is used up, unless the follower is in sync

Neither asks again before there is room, and both take so little at a time that the bytes flow evenly. While
no quota is set, one look at `is_set` is all that happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.replication.fetcher import Follower
    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.values import FetchPartition
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer

_LONGEST_HOLD_S = 0.5
"""A quota may be lifted meanwhile, so that nobody waits for longer without looking again."""
_SHORTEST_HOLD_S = 0.002
"""What is taken so much too early is paid for later, and a timer is not more exact."""
_UNLIMITED = 0x7FFFFFFF


class Throttle(Protocol):
    """A quota as replication sees it."""

    @property
    def is_set(self) -> bool:
        """Whether there is one at all."""

    def covers(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition is subject to it."""

    def wait_s(self) -> float:
        """How long it is used up, 0 if it is not."""

    def room_bytes(self) -> int:
        """How much may go through at once."""

    def note(self, size: int) -> None:
        """So many bytes have gone through."""


class Unthrottled:
    """No quota."""

    is_set = False

    def covers(self, topic_partition: TopicPartition) -> bool:  # noqa: ARG002
        return False

    def wait_s(self) -> float:
        return 0.0

    def room_bytes(self) -> int:
        return _UNLIMITED

    def note(self, size: int) -> None:
        """Nothing to remember."""


class Throttles(NamedTuple):
    """Those of one broker: for what it sends, and for what it fetches."""

    leader: Throttle = Unthrottled()
    follower: Throttle = Unthrottled()


class Held:
    """Stands where a paused follower's timer would: all that are held wait for one timer."""

    def cancel(self) -> None:
        """The one timer goes on for the others."""


_HELD = Held()


class Brake:
    """One fetcher's followers that lag behind under the quota, and those it holds for it."""

    def __init__(
        self, throttle: Throttle, clock: Clock, resume: Callable[[TopicPartition, Follower], None]
    ) -> None:
        """`resume` is called for each follower that was held, when there may be room again."""
        self.throttle = throttle
        self._clock = clock
        self._resume = resume
        self._lagging: dict[TopicPartition, Follower] = {}
        self._held: dict[TopicPartition, Follower] = {}
        self._timer: Timer | None = None
        self._share = 0

    def hold(
        self, asked_for: Iterable[TopicPartition], followers: Mapping[TopicPartition, Follower]
    ) -> Mapping[TopicPartition, Follower]:
        """Before a request for these: who is not to be in it, paused until there may be room again."""
        self._look_at(asked_for, followers)
        if not self._lagging:
            return {}
        wait_s = self.throttle.wait_s()
        if wait_s < _SHORTEST_HOLD_S:
            self._share = max(self.throttle.room_bytes() // len(self._lagging), 1)
            return {}
        held = {
            topic_partition: follower
            for topic_partition, follower in self._lagging.items()
            if follower.pause is None and not follower.caught_up
        }
        self._lagging.clear()
        for follower in held.values():
            follower.pause = _HELD
        self._held.update(held)
        if self._timer is None:
            self._timer = self._clock.call_later(min(wait_s, _LONGEST_HOLD_S), self._release)
        return held

    def _look_at(
        self, asked_for: Iterable[TopicPartition], followers: Mapping[TopicPartition, Follower]
    ) -> None:
        """Some may have caught up since the last time, or begun to lag."""
        for topic_partition in asked_for:
            follower = followers.get(topic_partition)
            if (
                follower is not None
                and follower.pause is None
                and not follower.caught_up
                and self.throttle.covers(topic_partition)
            ):
                self._lagging[topic_partition] = follower
            else:
                self._lagging.pop(topic_partition, None)

    def share(self, topic_partition: TopicPartition, most: int) -> int:
        """How much of a partition the request may ask for: all who lag get the same."""
        return min(most, self._share) if topic_partition in self._lagging else most

    def forget(self, topic_partition: TopicPartition) -> None:
        """It is not fetched any more."""
        self._lagging.pop(topic_partition, None)
        self._held.pop(topic_partition, None)

    def close(self) -> None:
        """Hold nobody any more, and wake nobody either."""
        self._lagging.clear()
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release(self) -> None:
        self._timer = None
        held, self._held = self._held, {}
        for topic_partition, follower in held.items():
            self._resume(topic_partition, follower)


class Allowance:
    """What one answer to a follower may have of the leader's quota."""

    __slots__ = ("_replica_id", "_room", "_throttle", "charged", "held_back")

    def __init__(self, throttle: Throttle, replica_id: int) -> None:
        self._throttle = throttle
        self._replica_id = replica_id
        self._room = throttle.room_bytes()
        self.charged = 0
        """Bytes that count once the answer is sent."""
        self.held_back: set[TopicPartition] = set()
        """Partitions that have something for the follower which it must wait for."""

    def limit(self, partition: HostedPartition, wish: FetchPartition) -> int | None:
        """How much the follower may get of the partition at most; None for as much as it likes."""
        key = partition.topic_partition
        if self._replica_id in partition.isr or not self._throttle.covers(key):
            return None
        if self._room <= 0 and wish.offset < partition.log.end_offset:
            self.held_back.add(key)
        return max(self._room, 0)

    def take(self, topic_partition: TopicPartition, size: int) -> None:
        """So much of it is in the answer. Of a partition under the quota all counts, as it does in Kafka."""
        if self._throttle.covers(topic_partition):
            self.charged += size
            self._room -= size
