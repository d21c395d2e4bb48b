"""The rate by which Kafka judges a client: what it has used in the last samples, over their time.

A client that has been idle is taken to have been so for a whole window. So it may begin with a burst, of all
that its quota allows in a window less one sample, and is throttled only after that. Replication quotas, which
must not let bursts through, are judged by `window.py`.
"""

from __future__ import annotations

from collections import deque
from math import inf

_SHORTEST_S = 0.001


class _Sample:
    __slots__ = ("amount", "began_s", "last_s")

    def __init__(self, now_s: float) -> None:
        self.began_s = self.last_s = now_s
        self.amount = 0.0


class SampledRate:
    """Amounts in samples, which leave the window when their last amount does. Time must not go back."""

    def __init__(self, samples: int, sample_s: float) -> None:
        self._most = samples
        self._sample_s = sample_s
        self._samples: deque[_Sample] = deque()
        """Oldest first."""

    def note(self, amount: float, now_s: float) -> None:
        """Count an amount; a negative one takes back what was counted."""
        self._slide(now_s)
        if not self._samples or now_s - self._samples[-1].began_s >= self._sample_s:
            self._samples.append(_Sample(now_s))
        self._samples[-1].amount += amount
        self._samples[-1].last_s = now_s

    def throttle_s(self, limit: float, now_s: float) -> float:
        """Return how long to wait until the rate is down to the limit again; 0 if it is not above it."""
        self._slide(now_s)
        window_s = self._window_s(now_s)
        rate = sum(each.amount for each in self._samples) / window_s
        if rate <= limit:
            return 0.0
        return (rate - limit) / limit * window_s if limit > 0 else inf

    def is_idle(self, now_s: float) -> bool:
        """Return whether nothing was counted within the window."""
        self._slide(now_s)
        return not self._samples

    def _window_s(self, now_s: float) -> float:
        """Return the time since the oldest sample began, but at least that of all samples but one."""
        elapsed_s = now_s - self._samples[0].began_s if self._samples else 0.0
        missing = max(self._most - 1 - int(elapsed_s // self._sample_s), 0)
        return max(elapsed_s + missing * self._sample_s, _SHORTEST_S)

    def _slide(self, now_s: float) -> None:
        window_s = self._most * self._sample_s
        while self._samples and now_s - self._samples[0].last_s >= window_s:
            self._samples.popleft()
