"""The tree of small nodes through which brokers agree: who is alive, who is controller, what is where.

One protocol, two implementations that behave alike (tests/conformance/test_store.py holds them to it):

    protocol.py    Store: one broker's session; the values it speaks in
    operations.py  Create, Set, Delete, Check: what a transaction is made of
    errors.py      what can go wrong
    embedded.py    EmbeddedStore: the server in this process, durable in SQLite
    zookeeper.py   ZooKeeperStore: a session with a real ZooKeeper
    znodes/        what Kafka writes into which node

`tree.py`, `watches.py` and `database.py` are the embedded server's parts.
"""

from restow.cluster.store.errors import (
    BadVersion,
    InvalidPath,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreError,
    StoreUnavailable,
    TooLarge,
    UnreadableNode,
)
from restow.cluster.store.operations import CheckVersion, Create, Delete, Operation, Result, Results, Set
from restow.cluster.store.protocol import NodeChange, Stat, Store, StoreNode, Watch, WatchEvent, ensure_paths

__all__ = [
    "BadVersion",
    "CheckVersion",
    "Create",
    "Delete",
    "InvalidPath",
    "NoChildrenForEphemerals",
    "NoNode",
    "NodeChange",
    "NodeExists",
    "NotEmpty",
    "Operation",
    "Result",
    "Results",
    "SessionExpired",
    "Set",
    "Stat",
    "Store",
    "StoreError",
    "StoreNode",
    "StoreUnavailable",
    "TooLarge",
    "UnreadableNode",
    "Watch",
    "WatchEvent",
    "ensure_paths",
]
