"""Settings of groups: the supported `group.*` and `offsets.*` configs."""

from __future__ import annotations

from restow._frozen import frozen

_DAY_MS = 24 * 60 * 60 * 1000
UNLIMITED = 2**31 - 1


@frozen
class GroupConfig:
    """Defaults are Kafka's."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = UNLIMITED
    new_member_join_timeout_ms: int = 300_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * _DAY_MS
    offsets_retention_check_interval_ms: int = 600_000
    assignors: tuple[str, ...] = ("uniform", "range")
    """Of the protocol `consumer`: by name, the default first."""
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_assignment_interval_ms: int = 1_000
    """The least time between two targets of a group; members that come meanwhile wait for the next one."""
    consumer_max_size: int = UNLIMITED
    may_upgrade: bool = True
    """Whether a member of the protocol `consumer` turns a classic group with members into one of its own."""
    may_downgrade: bool = True
    """Whether such a group becomes classic when its last member of the protocol `consumer` has left."""
