"""Settings of a broker's parts, read from Kafka's broker configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller import ControllerConfig
from restow.cluster.groups import GroupConfig
from restow.cluster.net.server import ServerLimits

if TYPE_CHECKING:
    from restow.cluster.config.configs import BrokerConfigs

_MINUTE_MS = 60_000


def group_config(configs: BrokerConfigs) -> GroupConfig:
    """Return the group coordinator's settings."""
    return GroupConfig(
        min_session_timeout_ms=configs.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=configs.integer("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=configs.integer("group.initial.rebalance.delay.ms"),
        max_size=configs.integer("group.max.size"),
        offset_metadata_max_bytes=configs.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=configs.integer("offsets.retention.minutes") * _MINUTE_MS,
        offsets_retention_check_interval_ms=configs.integer("offsets.retention.check.interval.ms"),
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
