"""Quotas of replication: how fast replicas may catch up, and logs move between log dirs.

`SlidingQuota` is the arithmetic, `ReplicationQuotas` what a broker has of it.
"""

from __future__ import annotations

from restow.cluster.quotas.replication import Quota, ReplicaQuota, ReplicationQuotas
from restow.cluster.quotas.window import SlidingQuota

__all__ = ["Quota", "ReplicaQuota", "ReplicationQuotas", "SlidingQuota"]
