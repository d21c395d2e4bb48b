"""Types for ids that are plain numbers and strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

BrokerId: TypeAlias = int
Rack: TypeAlias = str
_Topic = TypeVar("_Topic")
_Value = TypeVar("_Value")


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


def by_topic(pairs: Iterable[tuple[_Topic, _Value]]) -> dict[_Topic, list[_Value]]:
    """Gather by topic what pairs have second, such as the numbers of partitions, in the order given."""
    found: dict[_Topic, list[_Value]] = {}
    for topic, value in pairs:
        found.setdefault(topic, []).append(value)
    return found
