"""Capture the present state of a cluster over the wire.

with restow.connect("localhost:9092") as cluster:
    snapshot = cluster.snapshot()
"""

from typing import TYPE_CHECKING

from restow._stages import late, make_callable
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.snapshot.text import read_snapshot, write_snapshot

if TYPE_CHECKING:
    from restow.snapshot.capturing import capture, capture_with_groups, hidden_topics, snapshot

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

if not TYPE_CHECKING:  # a file is read without a client, which takes a while to import
    __getattr__ = late(
        __name__,
        dict.fromkeys(
            ("capture", "capture_with_groups", "hidden_topics", "snapshot"), f"{__name__}.capturing"
        ),
    )
make_callable(__name__)
