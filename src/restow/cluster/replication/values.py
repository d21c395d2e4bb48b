"""Values that enter and leave replication, and its two outside interfaces.

Results are the values that the fast wire encoders take, so that nothing is built twice.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import TopicPartition
    from restow.wire.error_codes import ErrorCode
    from restow.wire.fetch import Fetched

CONSUMER = -1
"""Replica id of a consumer."""
ONLOOKER = -2
"""Replica id of a consumer that may read beyond the high watermark."""
NO_EPOCH = -1
NO_LEADER = -1
NO_SESSION = 0
INITIAL_EPOCH = 0
"""Epoch of a fetch that starts a session."""
FINAL_EPOCH = -1
"""Epoch of a fetch that wants no session, or ends the named one."""


class PartitionRefused(Exception):
    """A request that a partition refuses, with its error code; `why` says it better where that is general."""

    def __init__(self, code: ErrorCode, why: str | None = None) -> None:
        super().__init__(why or code.message)
        self.code = code


class LeaderAndIsrPartition(NamedTuple):
    """A partition's state in a LeaderAndIsr request."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int
    """The version of the partition's state znode."""
    controller_epoch: int = 0
    is_new: bool = False


NO_ORDER = LeaderAndIsrPartition(NO_LEADER, NO_EPOCH, (), (), -1)
"""The state of a replica that the controller has said nothing of."""


class FetchPartition(NamedTuple):
    """A partition in a fetch: offset, size limit and known epochs."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    """Epoch of the expected leader."""
    last_fetched_epoch: int = NO_EPOCH
    """Epoch of the record before the offset, by which the leader detects divergence."""
    log_start_offset: int = -1
    """The follower's own log start."""


class FetchSpec(NamedTuple):
    """A fetch of a consumer or a follower, within a session (KIP-227) or without.

    With a session, the partitions are those that are new or changed since its last fetch.
    """

    partitions: Mapping[TopicPartition, FetchPartition]
    replica_id: int = CONSUMER
    max_wait_ms: int = 0
    min_bytes: int = 1
    max_bytes: int = 0x7FFFFFFF
    session_id: int = NO_SESSION
    session_epoch: int = FINAL_EPOCH
    forgotten: tuple[TopicPartition, ...] = ()
    committed_only: bool = False
    """Whether the consumer reads committed records only, up to the last stable offset."""
    rack: str | None = None
    """A consumer's rack, empty if it has none; None from consumers that only read from leaders."""

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


class FetchAnswer(NamedTuple):
    """The result of a fetch. With a session, partitions without news are left out."""

    error_code: int = 0
    session_id: int = NO_SESSION
    partitions: Mapping[TopicPartition, Fetched] = MappingProxyType({})


class FoundOffset(NamedTuple):
    """The result of one partition's offset lookup."""

    error_code: int = 0
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class OffsetQuestion(NamedTuple):
    """A timestamp lookup: the first record not earlier, or a special timestamp below 0."""

    timestamp: int
    leader_epoch: int = NO_EPOCH


class EpochQuestion(NamedTuple):
    """A lookup of an epoch's end, with the expected leader epoch."""

    epoch: int
    leader_epoch: int = NO_EPOCH


class LowWatermark(NamedTuple):
    """The smallest log start of a partition's in-sync replicas."""

    error_code: int = 0
    offset: int = -1


@frozen
class ReplicationConfig:
    """The broker's replication settings: `lag_time_max_ms` is replica.lag.time.max.ms, and so on."""

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
    reads_by_rack: bool = False
    """Whether consumers are sent to a replica in their rack."""


class IsrWriter(Protocol):
    """Writes a leader's ISR changes durably."""

    async def write(
        self,
        topic_partition: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        expected_znode_version: int,
    ) -> int | None:
        """Return the new version, or None if another state is in force, which the controller will send.

        Raises RestowError or OSError if the outcome is unknown, and PartitionRefused if the state surely is
        as the leader knows it.
        """


class LeaderClient(Protocol):
    """A follower's connection to one leader. Calls may overlap; they reach the leader in order.

    A new fetch makes the leader end the previous one in the same session.
    """

    async def fetch(self, spec: FetchSpec) -> FetchAnswer:
        """Fetch. Raises OSError (ConnectionError, TimeoutError) without a response."""

    def close(self) -> None:
        """Refuse new calls and end pending ones with ConnectionError."""
