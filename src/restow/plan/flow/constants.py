"""The constants of the flow model: what brokers can do, and how long a step takes besides copying.

They are known from earlier runs on the cluster, or guessed. A guess is a range: slow, usual and fast values,
which become the range of the answer.
"""

from __future__ import annotations

from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIB = 1 << 20
_WINDOW_S = 11.0
"""Kafka's defaults of `replication.quota.window.num` and `replication.quota.window.size.seconds`."""
FETCH_BYTES, RESPONSE_BYTES = MIB, 10 * MIB
"""Kafka's defaults of `replica.fetch.max.bytes` and `replica.fetch.response.max.bytes`."""


@frozen
class Constants:
    """One value for each constant. Rates are bytes per second."""

    broker_rate: float
    """What one broker can receive, and what it can send: its network and disk, clients included."""
    dir_rate: float
    """What one broker can copy between its log dirs."""
    throttle_share: float
    """The share of a throttle that passes. A run corrects the rate that it sets, so it is near 1."""
    dir_share: float
    """The share of a throttle between log dirs that passes. A run does not correct it, and Kafka measures
    bursts against the pauses between them: it takes n bursts in n - 1 pauses for too much."""
    begin_s: float
    """From the request to the first bytes: the controller decides, brokers hear of it, followers fetch."""
    settle_s: float
    """From the last byte to the end of the step: the replica joins the ISR, the controller removes others."""
    round_trip_s: float
    """The time of one fetch without its bytes. A fetch brings 1 MiB per replica and 10 MiB in all."""
    request_s: float
    """How long a request of the tool takes."""
    throttling_s: float = 0.0
    """How long a run sets throttles before its first move, and removes them after its last."""
    total_rate: float = inf
    """What all brokers together can receive: they may share a machine, disks or a switch. Infinity unless
    runs have shown it."""
    fetchers: int = 1
    """`num.replica.fetchers`: how many fetches a follower sends to one leader at a time."""
    delete_delay_s: float = 60.0
    """`file.delete.delay.ms`: how long the files of a removed replica still take room."""
    detect_s: float = 9.0
    """`broker.session.timeout.ms`: how long a dead broker counts as alive."""
    page_cache_bytes: float | None = None
    """What a broker keeps in memory of its logs; None if nobody knows."""

    @property
    def copy_ceiling(self) -> float:
        """Return the most that the copy of one replica gets."""
        return FETCH_BYTES / self.round_trip_s

    @property
    def pair_ceiling(self) -> float:
        """Return the most that one follower gets from one leader."""
        return self.fetchers * RESPONSE_BYTES / self.round_trip_s


IN_WORDS = {
    "broker_rate": "what a broker can copy per second",
    "total_rate": "what all brokers together can copy per second",
    "dir_rate": "what a broker can copy per second between its log dirs",
    "dir_share": "which share of a throttle between log dirs passes",
    "begin_s": "how long a move takes to begin",
    "settle_s": "how long a move takes to end after its last byte",
    "throttling_s": "how long throttles take to be set and removed",
}
"""The constants that earlier runs can tell, as a screen calls them."""

SLOW = Constants(
    broker_rate=100e6,
    dir_rate=60e6,
    throttle_share=0.94,
    dir_share=0.82,
    begin_s=1.0,
    settle_s=1.0,
    round_trip_s=0.010,
    request_s=0.030,
    throttling_s=1.5,
)
USUAL = Constants(
    broker_rate=300e6,
    dir_rate=200e6,
    throttle_share=0.99,
    dir_share=0.87,
    begin_s=0.15,
    settle_s=0.15,
    round_trip_s=0.002,
    request_s=0.005,
    throttling_s=0.3,
)
FAST = Constants(
    broker_rate=1000e6,
    dir_rate=600e6,
    throttle_share=1.02,
    dir_share=0.95,
    begin_s=0.05,
    settle_s=0.05,
    round_trip_s=0.001,
    request_s=0.002,
    throttling_s=0.1,
)


@frozen
class Calibration:
    """The constants of one cluster as a range, and where they come from."""

    slow: Constants = SLOW
    usual: Constants = USUAL
    fast: Constants = FAST
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each known constant comes from, by its name; the others are guesses."""
    throttled_until_ms: float | None = None
    """When the last throttled copy of an earlier run ended; None if none is known."""

    def burst_s(self, start_ms: int) -> float:
        """Return for how many seconds' worth a throttle may let bytes pass at once when a run starts.

        Kafka measures a throttle over eleven seconds. Of an earlier run, its window still has the time since,
        in which nothing passed. After that, it begins anew with one second.
        """
        since_s = (
            _WINDOW_S if self.throttled_until_ms is None else (start_ms - self.throttled_until_ms) / 1000
        )
        return max(1.0, since_s) if 0 <= since_s < _WINDOW_S else 1.0

    def know(self, name: str, values: Sequence[float], source: str) -> Calibration:
        """Return the calibration with one constant known: its slow, usual and fast value."""
        presets = zip((self.slow, self.usual, self.fast), values, strict=True)
        slow, usual, fast = (replace(preset, **{name: value}) for preset, value in presets)  # type: ignore[arg-type]
        return replace(self, slow=slow, usual=usual, fast=fast, sources={**self.sources, name: source})

    def with_page_cache(self, size_bytes: int) -> Calibration:
        """Return the calibration with what a broker keeps in memory of its logs."""
        presets = (replace(each, page_cache_bytes=size_bytes) for each in (self.slow, self.usual, self.fast))
        slow, usual, fast = presets
        return replace(self, slow=slow, usual=usual, fast=fast)


def known_lines(sources: Mapping[str, str]) -> list[str]:
    """Return what is known in words, a line for each source: `known from 2 earlier runs: …; …`."""
    found: dict[str, list[str]] = {}
    for name, source in sources.items():
        found.setdefault(source, []).append(IN_WORDS.get(name, name))
    return [f"known from {source}: {'; '.join(words)}" for source, words in found.items()]
