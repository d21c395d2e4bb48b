"""The automatic throttle.

It starts from a measurement: enough to keep up with what is produced, and at least a minimum. It rises
carefully while the moves use what they are given. It is cut at the first sign of harm: an ISR that shrank, or
requests that take longer than before.
"""

from __future__ import annotations

from restow._frozen import frozen

FLOOR = 1_000_000
START_FLOOR = 10_000_000
_UP, _DOWN = 1.25, 0.5
_SLOW = 3.0
"""How many times longer than at the start requests may take."""
_SLOW_S = 0.05
"""The latency that is always acceptable: on an idle cluster, three times the usual is still short."""
_USED = 0.8
"""The share of the throttle from which it counts as used up."""


@frozen
class Signs:
    """Measurements since the last decision."""

    incoming: float
    """Bytes per second that producers write to the busiest broker."""
    copied: float
    """Bytes per second that the busiest receiving broker got."""
    latency_s: float
    shrunk: int = 0
    """Partitions that lost an in-sync replica, without moving ones."""
    lag_grows: bool = False
    """Whether a moving replica falls behind its producers."""


@frozen
class Decision:
    """A rate in bytes per second, and the reason for it."""

    rate: int
    reason: str


def first(signs: Signs) -> Decision:
    """Return the rate to start with."""
    rate = max(START_FLOOR, int(2 * signs.incoming))
    return Decision(rate=rate, reason=f"{signs.incoming:,.0f} B/s are written to the busiest broker")


def decide(rate: int, signs: Signs, usual_latency_s: float) -> Decision:
    """Return the next rate, or the same one if there is no reason to change it."""
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
    """Cut the rate; start from the bytes really copied, because a throttle above them has no effect."""
    base = min(rate, signs.copied) if signs.copied > 0 else rate
    return Decision(rate=max(FLOOR, int(base * _DOWN)), reason=reason)
