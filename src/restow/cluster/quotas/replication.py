"""A broker's three replication quotas (KIP-73, KIP-113).

    leader     bytes sent to replicas out of sync   leader.replication.throttled.rate
    follower   bytes fetched for replicas out of sync             follower.replication.throttled.rate
    log dirs   bytes copied between log dirs       replica.alter.log.dirs.io.max.bytes.per.second

The first two apply to the partitions that a topic lists for this broker in the configs
leader.replication.throttled.replicas and follower.replication.throttled.replicas. A change takes effect at
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.config import FOREVER
from restow.cluster.quotas.window import SlidingQuota

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.config.configs import BrokerConfigs, TopicSettings
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock

_EVERYTHING = "*"


class Quota:
    """An optional limit. Without one, nothing is counted."""

    def __init__(self, clock: Clock, window: Callable[[], SlidingQuota]) -> None:
        self._clock = clock
        self._make_window = window
        self._window: SlidingQuota | None = None

    @property
    def is_set(self) -> bool:
        return self._window is not None

    @property
    def bytes_per_s(self) -> float | None:
        """The limit; None if there is none."""
        return None if self._window is None else self._window.bytes_per_s

    def limit(self, bytes_per_s: int) -> None:
        """Set the limit. Kafka's largest number means none."""
        if bytes_per_s >= FOREVER:
            self._window = None
            return
        if self._window is None:
            self._window = self._make_window()
        if self._window.bytes_per_s != bytes_per_s:
            self._window.change(bytes_per_s, self._clock.monotonic_s())

    def wait_s(self) -> float:
        """Return how long to wait before the next bytes; 0 if some may pass now."""
        return 0.0 if self._window is None else self._window.wait_s(self._clock.monotonic_s())

    def room_bytes(self) -> int:
        """Return how many bytes may pass at once; 0 if none may."""
        return FOREVER if self._window is None else self._window.room_bytes(self._clock.monotonic_s())

    def note(self, size: int) -> None:
        """Count bytes that have passed."""
        if self._window is not None:
            self._window.note(size, self._clock.monotonic_s())

    def rate(self) -> float:
        """Return the recent bytes per second; 0 without a limit, because nothing is counted."""
        return 0.0 if self._window is None else self._window.rate(self._clock.monotonic_s())


class ReplicaQuota(Quota):
    """A limit for the replicas that topics list."""

    def __init__(
        self, clock: Clock, window: Callable[[], SlidingQuota], lists: Callable[[TopicPartition], bool]
    ) -> None:
        super().__init__(clock, window)
        self._lists = lists

    def covers(self, topic_partition: TopicPartition) -> bool:
        """Return whether there is a limit and the partition is subject to it."""
        return self._window is not None and self._lists(topic_partition)


class ReplicationQuotas:
    """All quotas of one broker. Call `refresh` when its configs have changed."""

    def __init__(self, broker_id: int, configs: BrokerConfigs, clock: Clock) -> None:
        self._configs = configs
        replicas = self._windows("replication.quota.window")
        as_leader = ThrottledReplicas(broker_id, configs, lambda topic: topic.throttled_leaders)
        as_follower = ThrottledReplicas(broker_id, configs, lambda topic: topic.throttled_followers)
        self.leader = ReplicaQuota(clock, replicas, as_leader)
        self.follower = ReplicaQuota(clock, replicas, as_follower)
        self.log_dirs = Quota(clock, self._windows("alter.log.dirs.replication.quota.window"))

    def refresh(self) -> None:
        """Read the rates from the configs."""
        rate = self._configs.integer
        self.leader.limit(rate("leader.replication.throttled.rate"))
        self.follower.limit(rate("follower.replication.throttled.rate"))
        self.log_dirs.limit(rate("replica.alter.log.dirs.io.max.bytes.per.second"))

    def _windows(self, prefix: str) -> Callable[[], SlidingQuota]:
        def window() -> SlidingQuota:
            samples = self._configs.integer(f"{prefix}.num")
            return SlidingQuota(0, samples, self._configs.integer(f"{prefix}.size.seconds"))

        return window


class ThrottledReplicas:
    """The replicas on this broker that topics list as throttled. A list is parsed once per config change."""

    def __init__(
        self, broker_id: int, configs: BrokerConfigs, listed: Callable[[TopicSettings], tuple[str, ...]]
    ) -> None:
        self._broker_id = broker_id
        self._configs = configs
        self._listed = listed
        self._read: dict[str, tuple[TopicSettings, frozenset[int] | None]] = {}
        """By topic: the list's text and its partitions; None for all of them."""

    def __call__(self, topic_partition: TopicPartition) -> bool:
        topic, partition = topic_partition
        settings = self._configs.settings(topic)
        known = self._read.get(topic)
        if known is None or known[0] is not settings:
            known = self._read[topic] = settings, self._parse(settings)
        return known[1] is None or partition in known[1]

    def _parse(self, settings: TopicSettings) -> frozenset[int] | None:
        listed = self._listed(settings)
        if _EVERYTHING in listed:
            return None
        pairs = (each.partition(":") for each in listed)
        return frozenset(int(partition) for partition, _, broker in pairs if self._is_here(partition, broker))

    def _is_here(self, partition: str, broker: str) -> bool:
        """Return whether an entry names this broker. Lists written to the store by hand may be malformed."""
        return partition.isdecimal() and broker.isdecimal() and int(broker) == self._broker_id
