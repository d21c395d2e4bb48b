"""Replication quotas: how fast replicas may catch up, and logs may move between log dirs.

`SlidingQuota` is the arithmetic, `ReplicationQuotas` holds a broker's quotas.
"""

from restow.cluster.quotas.replication import Quota, ReplicaQuota, ReplicationQuotas
from restow.cluster.quotas.window import SlidingQuota

__all__ = ["Quota", "ReplicaQuota", "ReplicationQuotas", "SlidingQuota"]
