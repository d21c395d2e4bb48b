"""Types for ids that are plain numbers and strings."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from restow.errors import InvalidInput

BrokerId: TypeAlias = int
Rack: TypeAlias = str


class TopicPartition(NamedTuple):
    """One partition of a topic. A tuple, because groups have millions, and tuples sort and hash fast."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Return the partition that `orders-7` names; topics may have dashes themselves."""
        topic, _, number = text.rpartition("-")
        if not topic or not (number.isascii() and number.isdigit()):
            raise InvalidInput(f"{text!r} is not TOPIC-NUMBER, like orders-7")
        return cls(topic, int(number))
