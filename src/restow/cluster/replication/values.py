"""What goes in and out of replication, and the two things it is given from outside.

Results are the values that the wire's hot encoders take, so that nothing is made twice on the way out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import TopicPartition
    from restow.wire.fetch import Fetched

CONSUMER = -1
"""The replica id of one who is no replica."""
ONLOOKER = -2
"""The replica id of a consumer that may look behind the high watermark."""
NO_EPOCH = -1
NO_LEADER = -1
NO_SESSION = 0
INITIAL_EPOCH = 0
"""The epoch of a fetch that begins a session."""
FINAL_EPOCH = -1
"""The epoch of a fetch that wants none, or ends the one it names."""


class FetchPartition(NamedTuple):
    """From where on somebody wants how much of a partition, and which epochs they know."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    """Of the leader they believe to ask."""
    last_fetched_epoch: int = NO_EPOCH
    """Of the record before the offset, by which the leader sees whether their log is like its own."""
    log_start_offset: int = -1
    """A follower's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSpec:
    """A fetch of a consumer or a follower, within a session (KIP-227) or without.

    With a session the partitions are those that are new or changed since its last fetch.
    """

    partitions: Mapping[TopicPartition, FetchPartition]
    replica_id: int = CONSUMER
    max_wait_ms: int = 0
    min_bytes: int = 1
    max_bytes: int = 0x7FFFFFFF
    committed_only: bool = False
    session_id: int = NO_SESSION
    session_epoch: int = FINAL_EPOCH
    forgotten: tuple[TopicPartition, ...] = ()

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAnswer:
    """What came of it. With a session, partitions with nothing new are left out."""

    error_code: int = 0
    session_id: int = NO_SESSION
    partitions: Mapping[TopicPartition, Fetched] = field(default_factory=dict)


class FoundOffset(NamedTuple):
    """The answer to a question for one partition's offset."""

    error_code: int = 0
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class OffsetQuestion(NamedTuple):
    """Which offset has this time: of the first record not earlier, or one of the times below 0."""

    timestamp: int
    leader_epoch: int = NO_EPOCH


class EpochQuestion(NamedTuple):
    """Where did this epoch end, asked of the leader of that epoch."""

    epoch: int
    leader_epoch: int = NO_EPOCH


class LowWatermark(NamedTuple):
    """Where a partition begins on all of its in-sync replicas."""

    error_code: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    """The broker's settings for replication: `lag_time_max_ms` is replica.lag.time.max.ms, and so on."""

    lag_time_max_ms: int = 30_000
    fetch_wait_max_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 1 << 20
    fetch_response_max_bytes: int = 10 << 20
    fetch_backoff_ms: int = 1_000
    checkpoint_interval_ms: int = 5_000
    isr_retry_ms: int = 1_000
    session_slots: int = 1_000
    session_eviction_ms: int = 120_000


class IsrWriter(Protocol):
    """Where a leader's changes of its ISR are made known, and made to last."""

    async def write(
        self,
        topic_partition: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        expected_znode_version: int,
    ) -> int | None:
        """The new version, or None if it is not the expected one any more: then somebody else decides."""


class LeaderClient(Protocol):
    """A follower's way to one leader broker. Calls may overlap; they reach the leader in their order.

    A fetch that arrives makes the leader end the one before it in the same session.
    """

    async def fetch(self, spec: FetchSpec) -> FetchAnswer:
        """Raises OSError (ConnectionError, TimeoutError) if there is no answer to be had."""

    def close(self) -> None:
        """No more calls; those under way end with ConnectionError."""
