"""Keep a move at the rate that was asked for: neither slower nor faster, on average over the whole run.

A follower of Apache Kafka that is over its rate stops fetching for a second. Its rate is measured from the
first burst in the window to the last, n bursts over n - 1 pauses, so of 20 MB/s no more than 17 arrive. As
far as a run is behind what was asked for, the rate is set higher; as far as it is ahead, say by the burst
that a broker lets through at first, lower; by a quarter at most. Where much less arrives, something else
holds it up, and no throttle helps: then the rate is set as it was asked for, and this is tried again later.

Pure: told what is being copied, one sight after the other, it says by how much to raise or to lower.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.execute.progress.progress import Copying
    from restow.model import BrokerId, TopicPartition

_SLACK_S = 0.25
"""So far behind or ahead is nothing yet: what arrives is seen late."""
_HORIZON_S = 8.0
"""What is behind or ahead is to be made up for in so long."""
_LEARN_S = 60.0
"""What it takes to stay level is learned in about this time."""
_AHEAD_S = 15.0
"""What came too early counts as no more than this: more is hardly a burst, but data that was there before."""
_MOST = 0.25
_LOST_S = 6.0
"""Further behind than this, it is not the throttle."""
_TRY_AGAIN_S = 60.0
_STEP = 0.03
"""Smaller changes are not worth a request."""


class KeepingUp:
    """Of one run. `factor` is what its rate is to be set to, over what was asked for."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.behind_s = 0.0
        """Below zero where more has arrived than was asked for."""
        self._learned = 0.0
        self._rate: int | None = None
        self._last_s: float | None = None
        self._last: dict[tuple[TopicPartition, BrokerId], Copying] = {}
        self._not_before_s = 0.0

    def see(self, at_s: float, rate: int | None, copying: Iterable[Copying]) -> bool:
        """Take in what brokers copy from each other at that rate asked for; whether the factor has changed.

        Time in which nothing is copied does not count, and what was behind or ahead before it still does.
        """
        now = {(each.partition, each.broker): each for each in copying if each.log_dir is None}
        took_s = 0.0 if self._last_s is None else at_s - self._last_s
        busiest = _busiest(self._last, now) if self._last else 0
        was_busy, same_rate = bool(self._last), rate == self._rate
        self._last, self._last_s, self._rate = now, at_s, rate
        if rate is None or not same_rate or at_s < self._not_before_s:
            return self._begin_anew()
        if not was_busy:
            return False
        self.behind_s = max(self.behind_s + took_s - busiest / rate, -_AHEAD_S)
        if self.behind_s > _LOST_S:
            self._not_before_s = at_s + _TRY_AGAIN_S
            return self._begin_anew()
        much_s = self.behind_s - min(max(self.behind_s, -_SLACK_S), _SLACK_S)
        wanted = 1 + self._learned + much_s / _HORIZON_S
        if abs(wanted - 1) < _MOST:  # at its limit it would learn what it cannot do
            self._learned += much_s * took_s / _LEARN_S
        return self._set(min(max(wanted, 1 - _MOST), 1 + _MOST))

    def _begin_anew(self) -> bool:
        self.behind_s = self._learned = 0.0
        return self._set(1.0)

    def _set(self, factor: float) -> bool:
        if abs(factor - self.factor) < _STEP and factor != 1.0:
            return False
        changed, self.factor = factor != self.factor, factor
        return changed


def _busiest(
    before: dict[tuple[TopicPartition, BrokerId], Copying],
    now: dict[tuple[TopicPartition, BrokerId], Copying],
) -> int:
    """Bytes through the broker that received or sent most. What is not copied any more has arrived whole."""
    received: Counter[BrokerId] = Counter()
    sent: Counter[BrokerId | None] = Counter()
    for key, old in before.items():
        new = now.get(key)
        size = old.behind_bytes if new is None else max(0, new.copied_bytes - old.copied_bytes)
        received[old.broker] += size
        sent[old.leader] += size
    for key in now.keys() - before.keys():
        received[now[key].broker] += now[key].copied_bytes
        sent[now[key].leader] += now[key].copied_bytes
    return max((*received.values(), *sent.values()), default=0)
