"""The controller's settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Defaults are Kafka's, except that automatic leader rebalancing is off."""

    unclean_leader_election: bool = False
    """`unclean.leader.election.enable` for topics that do not override it."""
    delete_topic: bool = True
    """`delete.topic.enable`: without it, the controller drops delete requests."""
    auto_leader_rebalance: bool = False
    rebalance_interval_s: float = 300.0
    rebalance_percentage: int = 10
    """Percentage of a broker's preferred partitions that other brokers may lead before an election."""
    retry_backoff_s: float = 0.1
    """Pause between two attempts to reach a broker, or to be elected after a failure."""
