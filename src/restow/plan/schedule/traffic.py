"""Compute what each broker has to receive, send, and copy between its log dirs, and how long that takes.

The broker with the most to do sets the least time, which `restow show` tells.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.model import BrokerId


class Way(Enum):
    """How bytes pass through a broker. Each way has a throttle of its own."""

    RECEIVED = "received"
    SENT = "sent"
    WITHIN = "within"


class Channel(NamedTuple):
    """One way through one broker."""

    way: Way
    broker: BrokerId

    def __str__(self) -> str:
        return f"broker {self.broker} {_DOES[self.way]}"


_DOES = {
    Way.RECEIVED: "received",
    Way.SENT: "sent",
    Way.WITHIN: "copied between its log dirs",
}


@dataclass(slots=True)
class Traffic:
    """Bytes by channel."""

    by_channel: Counter[Channel] = field(default_factory=Counter)

    def copy(self, size_bytes: int, *, to: BrokerId, sender: BrokerId | None) -> None:
        """Count a replica that a broker receives from its leader, if there is one."""
        self.by_channel[Channel(Way.RECEIVED, to)] += size_bytes
        if sender is not None:
            self.by_channel[Channel(Way.SENT, sender)] += size_bytes

    def copy_within(self, size_bytes: int, broker: BrokerId) -> None:
        """Count a replica that moves between two log dirs of a broker."""
        self.by_channel[Channel(Way.WITHIN, broker)] += size_bytes

    def of(self, way: Way) -> dict[BrokerId, int]:
        """Return the bytes by broker, for one way."""
        return {broker: size for (each, broker), size in self.by_channel.items() if each is way}

    @property
    def copied_bytes(self) -> int:
        """Return all bytes copied; sent bytes are other brokers' received bytes."""
        return sum(size for (way, _), size in self.by_channel.items() if way is not Way.SENT)

    def busiest(self) -> tuple[Channel, int] | None:
        """Return the channel with the most bytes; None if there are none."""
        most = max(self.by_channel.items(), key=lambda item: item[1], default=None)
        return most if most is not None and most[1] > 0 else None

    def seconds_at(self, rates: Mapping[Way, float]) -> float | None:
        """Return how long the busiest broker takes at these rates; None if a rate it needs is unknown.

        A channel without bytes needs no rate.
        """
        longest = 0.0
        for channel, size in self._busy():
            rate = rates.get(channel.way)
            if rate is None or rate <= 0:
                return None
            longest = max(longest, size / rate)
        return longest

    def _busy(self) -> Iterator[tuple[Channel, int]]:
        return ((channel, size) for channel, size in self.by_channel.items() if size > 0)
