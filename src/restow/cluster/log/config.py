"""A topic's settings for its logs, with Kafka's names and defaults."""

from __future__ import annotations

from restow._frozen import frozen
from restow.wire.batches import CREATE_TIME

FOREVER = 2**63 - 1
"""Kafka's value for no limit."""
UNLIMITED = -1

_DAY_MS = 24 * 60 * 60 * 1000


@frozen
class LogConfig:
    """`segment_bytes` is Kafka's segment.bytes, and so on. A retention of -1 means no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = UNLIMITED
    cleanup_delete: bool = True
    """cleanup.policy has `delete`."""
    cleanup_compact: bool = False
    """cleanup.policy has `compact`."""
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    index_interval_bytes: int = 4096
    timestamp_type: int = CREATE_TIME
    timestamp_before_max_ms: int = FOREVER
    timestamp_after_max_ms: int = FOREVER
    max_message_bytes: int = 1_048_588
    compression: int | None = None
    """compression.type; None keeps that of the producer."""
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    delete_retention_ms: int = _DAY_MS
    producer_expiration_ms: int = _DAY_MS

    @property
    def roll_ms(self) -> int:
        """Return the age at which a segment rolls. Only rolled ones are compacted, so the lag counts."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.cleanup_compact else self.segment_ms
