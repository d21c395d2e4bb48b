"""What an operator may set about the controller."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Defaults are Kafka's, except that leaders are not moved back unasked."""

    unclean_leader_election: bool = False
    """`unclean.leader.election.enable` of topics that do not say it themselves."""
    delete_topic: bool = True
    """`delete.topic.enable`: without it, requests to delete are dropped."""
    auto_leader_rebalance: bool = False
    rebalance_interval_s: float = 300.0
    rebalance_percentage: int = 10
    """Of the partitions that a broker should lead, how many others may lead before they are called back."""
    retry_backoff_s: float = 0.1
    """Between two attempts to reach a broker, or to be elected after a failure."""
