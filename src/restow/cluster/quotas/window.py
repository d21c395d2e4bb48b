"""A byte rate over a sliding window of samples: whether it is exceeded, and until when.

    |  sample  |  sample  |  sample  |  sample …|        replication.quota.window.num of them,
    ^ oldest                                    ^ now     each replication.quota.window.size.seconds long

The rate is all bytes in the window over the time since its oldest sample began. One note may exceed the
limit; then nothing is admitted until time has caught up. A sample that leaves the window hands on its excess,
so large amounts are paid in full however short the window is. Unused quota does not accumulate, except for
one sample's worth. So over any period the bytes stay within the limit, plus one sample and one amount.
"""

from __future__ import annotations

from collections import deque
from math import inf

SAMPLES = 11
SAMPLE_S = 1.0
_GRAINS_PER_SAMPLE = 10


class SlidingQuota:
    """A limit in bytes per second. Callers pass the time, which must not go back."""

    def __init__(self, bytes_per_s: float, samples: int = SAMPLES, sample_s: float = SAMPLE_S) -> None:
        self.bytes_per_s = bytes_per_s
        self._window_s = samples * sample_s
        self._sample_s = sample_s
        self._grain_s = sample_s / _GRAINS_PER_SAMPLE
        self._samples: deque[list[float]] = deque()
        """Start and bytes of each sample, oldest first."""
        self._sum = 0.0

    def change(self, bytes_per_s: float, now_s: float) -> None:
        """Change the limit. Excess is paid at the new rate; unused quota is lost."""
        self._slide(now_s)
        owed = max(-self._left(now_s), 0.0)
        self.bytes_per_s = bytes_per_s
        self._samples = deque([[now_s, owed]] if owed else [])
        self._sum = owed

    def note(self, size: int, now_s: float) -> None:
        """Count bytes that have passed."""
        if not size:
            return
        self._slide(now_s)
        self._forget_savings(now_s)
        samples = self._samples
        if not samples:
            samples.append([now_s, 0.0])
        elif now_s >= samples[-1][0] + self._sample_s:
            began = samples[-1][0]
            samples.append([began + (now_s - began) // self._sample_s * self._sample_s, 0.0])
        samples[-1][1] += size
        self._sum += size

    def wait_s(self, now_s: float) -> float:
        """Return how long to wait; 0 if bytes may pass now, infinite if never."""
        if self.bytes_per_s <= 0:
            return inf
        self._slide(now_s)
        if not self._samples:
            return 0.0
        return max(self._samples[0][0] + self._sum / self.bytes_per_s - now_s, 0.0)

    def room_bytes(self, now_s: float) -> int:
        """Return how many bytes may pass at once: the rest, but at least a tenth of a sample.

        Larger amounts would make the traffic jerky.
        """
        if self.wait_s(now_s):
            return 0
        left = min(self._left(now_s), self.bytes_per_s * self._sample_s)
        return max(int(left), int(self.bytes_per_s * self._grain_s), 1)

    def _left(self, now_s: float) -> float:
        """Return the unused bytes since the window began; negative after an excess."""
        elapsed_s = now_s - self._samples[0][0] if self._samples else 0.0
        return self.bytes_per_s * elapsed_s - self._sum

    def _forget_savings(self, now_s: float) -> None:
        """Drop unused quota beyond one sample, so that a quiet window does not end in a burst."""
        if self._left(now_s) > self.bytes_per_s * self._sample_s:
            self._samples = deque([[now_s - self._sample_s, 0.0]])
            self._sum = 0.0

    def rate(self, now_s: float) -> float:
        """Return the bytes per second over the window, counting at least one sample's time."""
        self._slide(now_s)
        if not self._samples:
            return 0.0
        return self._sum / max(now_s - self._samples[0][0], self._sample_s)

    def _slide(self, now_s: float) -> None:
        samples = self._samples
        while samples and samples[0][0] + self._window_s <= now_s:
            began, size = samples.popleft()
            until = samples[0][0] if samples else now_s
            owed = max(size - self.bytes_per_s * (until - began), 0.0)
            if samples:
                samples[0][1] += owed
            elif owed:
                samples.append([until, owed])
            self._sum += owed - size
        if not samples:
            self._sum = 0.0
