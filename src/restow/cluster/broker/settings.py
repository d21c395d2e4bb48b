"""Settings of a broker's parts, read from Kafka's broker configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.config.table import InvalidConfig
from restow.cluster.controller import ControllerConfig
from restow.cluster.groups import GroupConfig
from restow.cluster.net.server import ServerLimits
from restow.cluster.transactions import TransactionConfig
from restow.errors import UnknownAssignor

if TYPE_CHECKING:
    from restow.cluster.config.configs import BrokerConfigs

_MINUTE_MS = 60_000
_MIGRATION_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def group_config(configs: BrokerConfigs) -> GroupConfig:
    """Return the group coordinator's settings."""
    policy = _migration_policy(configs)
    return GroupConfig(
        min_session_timeout_ms=configs.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=configs.integer("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=configs.integer("group.initial.rebalance.delay.ms"),
        max_size=configs.integer("group.max.size"),
        offset_metadata_max_bytes=configs.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=configs.integer("offsets.retention.minutes") * _MINUTE_MS,
        offsets_retention_check_interval_ms=configs.integer("offsets.retention.check.interval.ms"),
        assignors=_assignors(configs),
        consumer_session_timeout_ms=_between(configs, "session.timeout.ms"),
        consumer_heartbeat_interval_ms=_between(configs, "heartbeat.interval.ms"),
        consumer_assignment_interval_ms=_between(configs, "assignment.interval.ms"),
        consumer_max_size=configs.integer("group.consumer.max.size"),
        may_upgrade=policy in ("bidirectional", "upgrade"),
        may_downgrade=policy in ("bidirectional", "downgrade"),
    )


def _migration_policy(configs: BrokerConfigs) -> str:
    """Return which way groups may change their protocol while they have members."""
    policy = str(configs.value("group.consumer.migration.policy")).lower()
    if policy not in _MIGRATION_POLICIES:
        raise InvalidConfig(
            f"group.consumer.migration.policy must be one of {', '.join(_MIGRATION_POLICIES)}, not {policy!r}"
        )
    return policy


def _assignors(configs: BrokerConfigs) -> tuple[str, ...]:
    """Return the names of the assignors of brokers, all of which must exist."""
    from restow.assignors import get

    named = configs.value("group.consumer.assignors")
    if not isinstance(named, tuple) or not named:
        raise InvalidConfig("group.consumer.assignors must name an assignor, such as uniform")
    try:
        return tuple(get(name).name for name in named)
    except UnknownAssignor as error:
        raise InvalidConfig(f"group.consumer.assignors: {error}") from error


def _between(configs: BrokerConfigs, name: str) -> int:
    """Return a config of the protocol `consumer` that has a smallest and a largest value."""
    low, value, high = (configs.integer(f"group.consumer.{which}{name}") for which in ("min.", "", "max."))
    if not low <= value <= high:
        raise InvalidConfig(
            f"group.consumer.{name} must be between group.consumer.min.{name} ({low}) and "
            f"group.consumer.max.{name} ({high}), not {value}"
        )
    return value


def transaction_config(configs: BrokerConfigs) -> TransactionConfig:
    """Return the transaction coordinator's settings."""
    return TransactionConfig(
        max_timeout_ms=configs.integer("transaction.max.timeout.ms"),
        abort_interval_ms=configs.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        id_expiration_ms=configs.integer("transactional.id.expiration.ms"),
        id_expiration_interval_ms=configs.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
    )


def controller_config(configs: BrokerConfigs) -> ControllerConfig:
    """Return the controller's settings."""
    return ControllerConfig(
        unclean_leader_election=bool(configs.value("unclean.leader.election.enable")),
        delete_topic=configs.delete_topic_enable,
        auto_leader_rebalance=bool(configs.value("auto.leader.rebalance.enable")),
        rebalance_interval_s=configs.integer("leader.imbalance.check.interval.seconds"),
        rebalance_percentage=configs.integer("leader.imbalance.per.broker.percentage"),
    )


def server_limits(configs: BrokerConfigs) -> ServerLimits:
    """Return the limits of client connections."""
    return ServerLimits(
        max_frame_bytes=configs.integer("socket.request.max.bytes"),
        max_idle_ms=configs.integer("connections.max.idle.ms"),
    )
