"""Transactions: which producer has a transactional id, which partitions take part, how it ends.

`TransactionCoordinator` is the entry point. A `Transaction` decides what a request means, a shard stores
it in `__transaction_state`, and a `MarkerSender` tells the leaders of its partitions how it ended.
"""

from restow.cluster.transactions.config import TransactionConfig
from restow.cluster.transactions.coordinator import TransactionCoordinator
from restow.cluster.transactions.requests import EndOfTransaction, MarkerSender, TransactionFilter
from restow.cluster.transactions.transaction import ProducerIdAndEpoch

__all__ = [
    "EndOfTransaction",
    "MarkerSender",
    "ProducerIdAndEpoch",
    "TransactionConfig",
    "TransactionCoordinator",
    "TransactionFilter",
]
