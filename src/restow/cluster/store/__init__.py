"""The store through which brokers coordinate: a tree of znodes with liveness, controller and assignments.

One protocol, two implementations that behave alike (tests/conformance/test_store.py compares them):

    protocol.py    Store: one broker's session, and its values
    operations.py  Create, Set, Delete, CheckVersion: the operations of a transaction
    errors.py      the errors
    embedded.py    EmbeddedStore: the server in this process, durable in SQLite
    zookeeper.py   ZooKeeperStore: a session with a real ZooKeeper
    znodes/        the content of Kafka's znodes

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
from restow.cluster.store.operations import CheckVersion, Create, Delete, Operation, Results, Set
from restow.cluster.store.protocol import NodeChange, Stat, Store, StoreNode, WatchEvent, ensure_paths

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
    "WatchEvent",
    "ensure_paths",
]
