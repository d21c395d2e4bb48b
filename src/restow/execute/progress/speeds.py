"""What a run has measured in its last two minutes: rates through each broker, and the time of a step.

A rate counts only while a channel is really used: between two observations in which the same replica was
being copied. Steps that begin and end in between say more about controllers than about rates.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from restow.plan.schedule.traffic import Channel, Traffic, Way

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from restow.execute.progress.progress import Job

_SHORT_S, _LONG_S = 10.0, 120.0
_OVERALL_S = 30.0
_STEPS, _FEW_STEPS = 50, 3
_HARDLY_COPIES = 0.05
"""A step that would copy its bytes in this share of its time shows what a step takes beside copying."""


class _Sample(NamedTuple):
    at_s: float
    done: Traffic
    busy: Mapping[Channel, AbstractSet[Job]]


class Speeds:
    """Recent rates through each broker."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()
        self._steps: deque[tuple[float, int]] = deque(maxlen=_STEPS)

    def see(self, at_s: float, done: Traffic, busy: Mapping[Channel, AbstractSet[Job]]) -> None:
        """Record how much has been copied so far, and which replicas each broker is copying."""
        if self._samples and self._samples[-1].at_s == at_s:
            self._samples.pop()
        self._samples.append(_Sample(at_s, done, busy))
        while at_s - self._samples[0].at_s > _LONG_S:
            self._samples.popleft()

    def step_took(self, seconds: float, size_bytes: int) -> None:
        """Record how long a step took from its request to its end, and what it copied."""
        self._steps.append((seconds, size_bytes))

    def forget(self) -> None:
        """Forget all samples: after a pause, another throttle or a loss, earlier rates say little."""
        self._samples.clear()

    def step_s(self, rate: float) -> float | None:
        """Return what a step takes beside copying at this rate; None if too few steps show it."""
        took = [seconds for seconds, size in self._steps if size < _HARDLY_COPIES * rate * seconds]
        return min(took) if len(took) >= _FEW_STEPS else None

    def recent(self) -> dict[Channel, float]:
        """Return the rates of the last seconds, or of the last minutes if nothing was copied in these."""
        rates: dict[Channel, float] = {}
        for span_s in (_SHORT_S, _LONG_S):
            rates = self._rates(span_s)
            if of_all(rates) > 0:
                break
        return rates

    def steady(self) -> dict[Channel, float]:
        """Return the rates of channels that were used for long enough, while they were."""
        took: Counter[Channel] = Counter()
        moved: Counter[Channel] = Counter()
        for one, two in pairwise(self._samples):
            seconds = two.at_s - one.at_s
            for channel, jobs in two.busy.items():
                if not jobs.isdisjoint(one.busy.get(channel, ())):
                    took[channel] += seconds  # type: ignore[assignment]
                    moved[channel] += two.done.by_channel[channel] - one.done.by_channel[channel]
        return {channel: moved[channel] / span_s for channel, span_s in took.items() if span_s >= _SHORT_S}

    def overall(self) -> dict[Channel, float]:
        """Return the rates over all samples, pauses between steps included; none if that is a short time."""
        span_s = self._samples[-1].at_s - self._samples[0].at_s if self._samples else 0.0
        return self._rates(_LONG_S) if span_s >= _OVERALL_S else {}

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


def of_all(rates: Mapping[Channel, float]) -> float:
    """Return the bytes per second that all brokers receive and copy within together."""
    return sum(rate for (way, _), rate in rates.items() if way is not Way.SENT)
