"""Capture the present state of a cluster over the wire.

with restow.connect("localhost:9092") as cluster:
    snapshot = cluster.snapshot()
"""

from restow._stages import make_callable
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.snapshot.capture import capture, capture_with_groups, hidden_topics, snapshot
from restow.snapshot.text import read_snapshot, write_snapshot

__all__ = [
    "Copy",
    "LiveBroker",
    "LogDir",
    "Partition",
    "Snapshot",
    "Topic",
    "capture",
    "capture_with_groups",
    "hidden_topics",
    "read_snapshot",
    "snapshot",
    "write_snapshot",
]

make_callable(__name__)
