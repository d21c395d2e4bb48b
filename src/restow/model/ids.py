"""Names for the things that are identified by plain numbers and strings."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

BrokerId: TypeAlias = int
Rack: TypeAlias = str


class TopicPartition(NamedTuple):
    """One partition of one topic. A tuple, because groups have millions and they sort and hash as such."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
