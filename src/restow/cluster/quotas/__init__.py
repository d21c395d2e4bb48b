"""Quotas: how fast replicas may catch up, logs move between log dirs, and clients produce and consume.

window.py, replication.py    replication quotas, and their rates
rate.py, clients.py          quotas of clients, and their rates
entities.py, store.py        for whom quotas of clients are set, and where they are stored
"""

from restow.cluster.quotas.clients import ClientQuota, ClientQuotas
from restow.cluster.quotas.entities import InvalidQuota, QuotaEntity, written
from restow.cluster.quotas.replication import Quota, ReplicaQuota, ReplicationQuotas
from restow.cluster.quotas.store import QuotaStore
from restow.cluster.quotas.window import SlidingQuota

__all__ = [
    "ClientQuota",
    "ClientQuotas",
    "InvalidQuota",
    "Quota",
    "QuotaEntity",
    "QuotaStore",
    "ReplicaQuota",
    "ReplicationQuotas",
    "SlidingQuota",
    "written",
]
