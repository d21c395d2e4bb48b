"""A cluster as it is at this moment, asked over the wire."""

from restow.snapshot.capture import capture

__all__ = ["capture"]
