"""The throttle that finds its own height.

It starts from a measurement: enough for what is written to keep up with itself, and a floor so that something
happens at all. From there it is carefully raised as long as the moves use what they are given, and cut at the
first sign that somebody suffers: an ISR that shrank, or requests that take longer than they did before.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOOR = 1_000_000
START_FLOOR = 10_000_000
_UP, _DOWN = 1.25, 0.5
_SLOW = 3.0
"""How many times as long as at the beginning requests may take."""
_SLOW_S = 0.05
"""And how long in any case: on an idle cluster three times nothing is nothing."""
_USED = 0.8
"""From this share on, a throttle is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What was measured since the last decision."""

    incoming: float
    """Bytes per second that producers write to the busiest broker."""
    copied: float
    """Bytes per second that the busiest receiving broker got."""
    latency_s: float
    shrunk: int = 0
    """Partitions that lost an in-sync replica, moving ones aside."""
    lag_grows: bool = False
    """Whether some moving replica falls behind what is written to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A rate in bytes per second, and why."""

    rate: int
    reason: str


def first(signs: Signs) -> Decision:
    """Where to start."""
    rate = max(START_FLOOR, int(2 * signs.incoming))
    return Decision(rate=rate, reason=f"{signs.incoming:,.0f} B/s are written to the busiest broker")


def decide(rate: int, signs: Signs, usual_latency_s: float) -> Decision:
    """The next rate; the same one, if there is no reason to change it."""
    if signs.shrunk:
        return _down(rate, signs, f"{signs.shrunk} partitions lost an in-sync replica")
    if signs.latency_s > max(_SLOW * usual_latency_s, _SLOW_S):
        return _down(
            rate,
            signs,
            f"requests take {signs.latency_s * 1000:.0f} ms, before it was {usual_latency_s * 1000:.0f} ms",
        )
    if signs.lag_grows:
        return Decision(
            rate=max(int(rate * _UP), int(signs.incoming * _UP)),
            reason="a moving replica falls behind what is written to it",
        )
    if signs.copied >= rate * _USED:
        return Decision(rate=int(rate * _UP), reason="all of it is used and nobody suffers")
    return Decision(rate=rate, reason="not all of it is used")


def _down(rate: int, signs: Signs, reason: str) -> Decision:
    """From what is really copied, if that is less: a throttle far above it would be no throttle."""
    base = min(rate, signs.copied) if signs.copied > 0 else rate
    return Decision(rate=max(FLOOR, int(base * _DOWN)), reason=reason)
