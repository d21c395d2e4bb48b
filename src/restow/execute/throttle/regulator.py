"""Hold a move at the requested rate, neither slower nor faster, on average over the run.

A follower of Apache Kafka that exceeds its rate stops fetching for a second. Kafka measures the rate from the
first burst in the window to the last, n bursts over n - 1 pauses, so of 20 MB/s only 17 arrive. While a run
is behind the requested rate, the config is set higher; while it is ahead, for example after the initial
burst, lower; by a quarter at most. If much less arrives, the throttle is not the reason: then the config is
set to the requested rate, and this is tried again later.

Every broker that sends or receives has its own account, because bursts of several brokers come in turn. The
run is as far behind as the broker with the most left to copy: the others wait for it in the end.

Pure: it takes one observation after the other, and returns the factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.plan.schedule.traffic import Channel, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.execute.progress.progress import Copying
    from restow.model import BrokerId, TopicPartition

_SLACK_S = 0.25
"""Being this far behind or ahead is ignored: observations are late."""
_HORIZON_S = 8.0
"""A backlog or a lead is made up for within this time."""
_LEARN_S = 60.0
"""The factor that holds the rate is learned in about this time."""
_AHEAD_S = 15.0
"""A lead counts at most this much: a larger one is data that was there before, not a burst."""
MOST_CORRECTION = 0.25
"""The rate is set higher or lower by this share of it at most."""
_LOST_S = 6.0
"""Further behind than this, the throttle is not the reason."""
_TRY_AGAIN_S = 60.0
_STEP = 0.03
"""Smaller changes are not worth a request."""


class ThrottleRegulator:
    """The correction for one run. `factor` is the rate to set, divided by the requested rate."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.behind_s = 0.0
        """Negative if more has arrived than was requested."""
        self._accounts: dict[Channel, float] = {}
        """How far behind each receiving or sending broker is."""
        self._learned = 0.0
        self._rate: int | None = None
        self._last_s: float | None = None
        self._last: dict[tuple[TopicPartition, BrokerId], Copying] = {}
        self._not_before_s = 0.0

    def see(self, at_s: float, rate: int | None, copying: Iterable[Copying]) -> bool:
        """Record what brokers copy at the requested rate; return whether the factor has changed.

        Time without copying does not count; the backlog or lead from before it does.
        """
        now = {(each.partition, each.broker): each for each in copying if each.log_dir is None}
        took_s = 0.0 if self._last_s is None else at_s - self._last_s
        to_do, copied = _traffic(self._last, now)
        was_busy, same_rate = bool(self._last), rate == self._rate
        self._last, self._last_s, self._rate = now, at_s, rate
        if rate is None or not same_rate or at_s < self._not_before_s:
            return self._begin_anew()
        if not was_busy:
            return False
        self._keep_accounts(took_s, rate, to_do, copied)
        if self.behind_s > _LOST_S:
            self._not_before_s = at_s + _TRY_AGAIN_S
            return self._begin_anew()
        much_s = self.behind_s - min(max(self.behind_s, -_SLACK_S), _SLACK_S)
        wanted = 1 + self._learned + much_s / _HORIZON_S
        if abs(wanted - 1) < MOST_CORRECTION:  # at its limit it would learn a rate that cannot be reached
            self._learned += much_s * took_s / _LEARN_S
        return self._set(min(max(wanted, 1 - MOST_CORRECTION), 1 + MOST_CORRECTION))

    def _keep_accounts(self, took_s: float, rate: int, to_do: Traffic, copied: Traffic) -> None:
        """Update the accounts. A new broker starts from the run's own. A broker with less to copy may be
        slow: it never counts as lost. Where the same copies are left to a sender and a receiver, the one that
        is less behind has held the other back.
        """
        most = max(to_do.by_channel.values())
        last = [channel for channel, size in to_do.by_channel.items() if size == most]
        before, self._accounts = self._accounts, {}
        for channel in to_do.by_channel:
            behind_s = before.get(channel, self.behind_s) + took_s - copied.by_channel[channel] / rate
            latest_s = behind_s if channel in last else min(behind_s, _LOST_S)
            self._accounts[channel] = max(latest_s, -_AHEAD_S)
        self.behind_s = min(self._accounts[channel] for channel in last)

    def _begin_anew(self) -> bool:
        self.behind_s = self._learned = 0.0
        self._accounts = {}
        return self._set(1.0)

    def _set(self, factor: float) -> bool:
        if abs(factor - self.factor) < _STEP and factor != 1.0:
            return False
        changed, self.factor = factor != self.factor, factor
        return changed


def _traffic(
    before: dict[tuple[TopicPartition, BrokerId], Copying],
    now: dict[tuple[TopicPartition, BrokerId], Copying],
) -> tuple[Traffic, Traffic]:
    """Return the bytes to copy between two observations, and those copied. A replica gone has arrived."""
    to_do, copied = Traffic(), Traffic()
    for key in before | now:
        old, new = before.get(key), now.get(key)
        last = old or now[key]
        had, left = (0, last.size_bytes) if old is None else (old.copied_bytes, old.behind_bytes)
        to_do.copy(left, to=last.broker, sender=last.leader)
        arrived = left if new is None else max(0, new.copied_bytes - had)
        copied.copy(arrived, to=last.broker, sender=last.leader)
    return to_do, copied
