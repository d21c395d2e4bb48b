"""Rates and disk use over time, thinned out so that any run fits into a few hundred points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.plan.flow.links import Links
    from restow.plan.search.problem import Floats

_MOST = 400


class FlowHistory:
    """Points in time: the mean rate of every link since the last one, and the bytes in every log dir."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.at_s: list[float] = []
        self._rates: list[Floats] = []
        self._used: list[Floats] = []
        self._apart_s = 0.0
        self._since_s = 0.0
        self._passed: Floats = np.zeros(0)

    def add(self, from_s: float, to_s: float, link_rates: Floats, used: Floats) -> None:
        """Add a stretch of time with constant rates, which ends with these bytes in use."""
        width = 3 * len(self._links.brokers)
        if not len(self._passed):
            self._passed, self._since_s = np.zeros(width), from_s
        self._passed += link_rates[:width] * (to_s - from_s)
        took_s = to_s - self._since_s
        if took_s < self._apart_s or took_s <= 0:
            return
        self.at_s.append(to_s)
        self._rates.append((self._passed / took_s).astype(np.float32))
        self._used.append(used.copy())
        self._passed, self._since_s = np.zeros(width), to_s
        if len(self.at_s) > _MOST:
            self._thin_out()

    def _thin_out(self) -> None:
        """Merge neighbours: half as many points, twice as far apart."""
        spans = np.diff(np.array([0.0, *self.at_s]))
        pairs = range(1, len(self.at_s), 2)
        self._rates = [self._mean(at, spans[at - 1], spans[at]) for at in pairs]
        self._used = [self._used[at] for at in pairs]
        self.at_s = [self.at_s[at] for at in pairs]
        self._apart_s = max(2 * self._apart_s, self.at_s[-1] / _MOST)

    def _mean(self, at: int, before_s: float, span_s: float) -> Floats:
        passed = self._rates[at - 1] * before_s + self._rates[at] * span_s
        return (passed / (before_s + span_s)).astype(np.float32)

    def points(self) -> Iterator[tuple[float, Floats]]:
        """Yield the times, each with the rates of all links until then."""
        return zip(self.at_s, self._rates, strict=True)

    def rates_by_link(self) -> Floats:
        """Return the rates of all links, one row each, over the times of `at_s`."""
        return np.reshape(self._rates, (len(self.at_s), 3 * len(self._links.brokers))).T

    def used_by_dir(self) -> Floats:
        """Return the bytes of all log dirs, one row each, over the times of `at_s`."""
        return np.reshape(self._used, (len(self.at_s), len(self._links.log_dirs))).T
