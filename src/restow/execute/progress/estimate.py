"""Estimate when a run will be done, from the broker with the most work left.

Dividing the bytes left by the sum of all rates would be too optimistic: brokers that are done do not help the
others. So the work left in each direction of each broker is divided by the best rate that one broker reached,
capped by the throttle. A broker that is slower than the others sets the latest time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from restow.plan.schedule.traffic import Channel, Traffic, Way

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from restow.execute.throttle.throttles import ThrottleRates

_SHORT_S, _LONG_S = 10.0, 120.0
_NETWORK = (Way.RECEIVED, Way.SENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """Seconds left, at the best and at the worst of the recent rates."""

    soonest_s: float
    latest_s: float


class _Sample(NamedTuple):
    at_s: float
    done: Traffic
    busy: AbstractSet[Channel]


class Speeds:
    """Recent rates through each broker."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def see(self, at_s: float, done: Traffic, busy: AbstractSet[Channel]) -> None:
        """Record how much has been copied so far, and which brokers are copying."""
        if self._samples and self._samples[-1].at_s == at_s:
            self._samples.pop()
        self._samples.append(_Sample(at_s, done, busy))
        while at_s - self._samples[0].at_s > _LONG_S:
            self._samples.popleft()

    def forget(self) -> None:
        """Forget all samples: rates from before a pause say nothing about the time after it."""
        self._samples.clear()

    @property
    def span_s(self) -> float:
        """Return the seconds between the oldest and the newest sample."""
        return self._samples[-1].at_s - self._samples[0].at_s if self._samples else 0.0

    def of_all(self) -> float:
        """Return the total bytes per second of the last seconds, or of the last minutes if that is zero."""
        for span_s in (_SHORT_S, _LONG_S):
            rate = sum(size for (way, _), size in self._rates(span_s).items() if way is not Way.SENT)
            if rate > 0:
                return rate
        return 0.0

    def best(self) -> dict[Way, list[float]]:
        """Return the best rates of one broker over a short and a long time, in both directions as one."""
        found: dict[Way, list[float]] = {way: [] for way in Way}
        for span_s in (_SHORT_S, _LONG_S):
            rates = self._rates(span_s)
            for ways in (_NETWORK, (Way.WITHIN,)):
                best = max((rate for (way, _), rate in rates.items() if way in ways), default=0.0)
                if best > 0:
                    for way in ways:
                        found[way].append(best)
        return found

    def steady(self) -> dict[Channel, float]:
        """Return the rates of brokers that received, or copied between log dirs, during all samples."""
        if self.span_s < _SHORT_S:
            return {}
        always = frozenset.intersection(*(frozenset(each.busy) for each in self._samples))
        rates = self._rates(_LONG_S)
        return {
            channel: rates[channel]
            for channel in always
            if channel.way is not Way.SENT and rates.get(channel, 0.0) > 0
        }

    def _rates(self, span_s: float) -> dict[Channel, float]:
        last = self._samples[-1]
        first = next(each for each in self._samples if last.at_s - each.at_s <= span_s)
        took_s = last.at_s - first.at_s
        if took_s <= 0:
            return {}
        return {
            channel: max(0, size - first.done.by_channel[channel]) / took_s
            for channel, size in last.done.by_channel.items()
        }


def estimate(left: Traffic, speeds: Speeds, throttle: ThrottleRates) -> Eta | None:
    """Return a range, because recent rates may change; None if no rate is known."""
    limits = throttle.by_way()
    best = speeds.best()
    fast: dict[Way, float] = {}
    slow: dict[Way, float] = {}
    for way in Way:
        limit = limits.get(way)
        seen = [rate if limit is None else min(rate, limit) for rate in best[way]]
        if limit is not None and speeds.span_s < _SHORT_S:
            seen.append(limit)
        if seen:
            fast[way], slow[way] = max(seen), min(seen)
    soonest, latest = left.seconds_at(fast), left.seconds_at(slow)
    if soonest is None or latest is None:
        return None
    steady = speeds.steady()
    alone = (size / steady[channel] for channel, size in left.by_channel.items() if channel in steady)
    return Eta(soonest_s=soonest, latest_s=max(latest, *alone, 0.0))
