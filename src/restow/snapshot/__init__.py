"""A cluster as it is at this moment, asked over the wire."""

from restow.snapshot.capture import capture, hidden_topics
from restow.snapshot.text import read_snapshot, write_snapshot

__all__ = ["capture", "hidden_topics", "read_snapshot", "write_snapshot"]
