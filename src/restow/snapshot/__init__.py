"""A cluster as it is at this moment, asked over the wire."""

from restow.snapshot.capture import capture, hidden_topics

__all__ = ["capture", "hidden_topics"]
