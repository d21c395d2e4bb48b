"""Replication throttling: how leaders and followers obey a quota.

    follower   leaves lagging partitions out of its fetches while the quota is used up
    leader     returns no data to out-of-sync followers while the quota is used up

Neither retries before there is room, and both transfer small amounts, so that the bytes flow evenly. Without
a quota, the only cost is a look at `is_set`.
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
"""Longest wait before the next look, because a quota may be lifted meanwhile."""
_SHORTEST_HOLD_S = 0.002
"""Data this much too early is allowed: it is paid for later, and timers are no more exact."""
_UNLIMITED = 0x7FFFFFFF


class Throttle(Protocol):
    """A quota as replication sees it."""

    @property
    def is_set(self) -> bool:
        """Return whether there is a quota at all."""

    def covers(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition is subject to it."""

    def wait_s(self) -> float:
        """Return how long the quota stays used up; 0 if it is not."""

    def room_bytes(self) -> int:
        """Return how many bytes may pass at once."""

    def note(self, size: int) -> None:
        """Count bytes that have passed."""


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
        """Ignore the bytes."""


class Throttles(NamedTuple):
    """A broker's two quotas: for data it sends, and for data it fetches."""

    leader: Throttle = Unthrottled()
    follower: Throttle = Unthrottled()


class Held:
    """Stands in for a paused follower's timer: all held followers share one timer."""

    def cancel(self) -> None:
        """Do nothing: the shared timer continues for the others."""


_HELD = Held()


class Brake:
    """One fetcher's throttled followers, and those it holds back."""

    def __init__(
        self, throttle: Throttle, clock: Clock, resume: Callable[[TopicPartition, Follower], None]
    ) -> None:
        """`resume` is called for each held follower when there may be room again."""
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
        """Return the followers to leave out of a request; they pause until there may be room again."""
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
        """Update which of these followers lag."""
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
        """Return how many bytes to ask for; all lagging partitions get the same."""
        return min(most, self._share) if topic_partition in self._lagging else most

    def forget(self, topic_partition: TopicPartition) -> None:
        """Forget a partition that is no longer fetched."""
        self._lagging.pop(topic_partition, None)
        self._held.pop(topic_partition, None)

    def close(self) -> None:
        """Release all followers without resuming them."""
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
    """The share of the leader's quota for one response to a follower."""

    __slots__ = ("_replica_id", "_room", "_throttle", "charged", "held_back")

    def __init__(self, throttle: Throttle, replica_id: int) -> None:
        self._throttle = throttle
        self._replica_id = replica_id
        self._room = throttle.room_bytes()
        self.charged = 0
        """Bytes to count once the response is sent."""
        self.held_back: set[TopicPartition] = set()
        """Partitions with data that the follower must wait for."""

    def limit(self, partition: HostedPartition, request: FetchPartition) -> int | None:
        """Return the most bytes that the follower may get of the partition; None without a limit."""
        key = partition.topic_partition
        if self._replica_id in partition.isr or not self._throttle.covers(key):
            return None
        if self._room <= 0 and request.offset < partition.log.end_offset:
            self.held_back.add(key)
        return max(self._room, 0)

    def take(self, topic_partition: TopicPartition, size: int) -> None:
        """Count the bytes in the response. All bytes of a throttled partition count, as in Kafka."""
        if self._throttle.covers(topic_partition):
            self.charged += size
            self._room -= size
