"""Copies under way, as flows: each has bytes left, what producers add meanwhile, and links that it passes.

Rates are shared anew only when a flow begins or ends, or a link changes. Between two such moments everything
is a straight line, so the next end is known exactly.
"""

from __future__ import annotations

from itertools import compress
from math import ceil, inf, ulp
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from restow.plan.flow.sharing import OWN_CEILING, max_min

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from restow.plan.flow.sharing import Sharing
    from restow.plan.search.problem import Floats, Ints

K = TypeVar("K", bound="Hashable")
_ROUNDING = 1e-12
_NEARLY = 1e-6
"""Fewer bytes than this are none: rounding leaves them."""
_FEW = 50


class Flow(NamedTuple, Generic[K]):
    """One replica to copy. `links` are indices; every flow has the same number of them.

    A tuple, because a large rehearsal has a hundred thousand.
    """

    key: K
    links: tuple[int, ...]
    left_bytes: float
    grows: float = 0.0
    """Bytes per second that producers add."""
    ceiling: float = inf
    """The most that one copy gets, whatever is free."""


class Flows(Generic[K]):
    """The flows under way on a set of links, from one moment to the next."""

    def __init__(
        self,
        capacity: Floats,
        width: int,
        *,
        grain_s: float = 0.0,
        share: Sharing = max_min,
        passed: Callable[[float], object],
    ) -> None:
        """Take the links' capacities. Ends are dealt with every `grain_s`; with 0, each at its own moment.

        `passed` is called with the length of every stretch of time with constant `link_rates`.
        """
        self.capacity = capacity
        self.now_s = 0.0
        self.grain_s = grain_s
        self.link_rates = np.zeros(len(capacity))
        """Bytes per second through each link now."""
        self.link_bytes = np.zeros(len(capacity))
        self.most_rates = np.zeros(len(capacity))
        """The highest rate of each link so far."""
        self.held_s = np.zeros(len(capacity))
        """Seconds in which each link held back a flow."""
        self.own_s = 0.0
        """Seconds in which a flow was held back by nothing but its own ceiling."""
        self.idle_s = 0.0
        self._passed, self._max_min = passed, share
        self._keys: list[K] = []
        self._links: Ints = np.zeros((width, 0), dtype=np.int64)
        self._numbers: Floats = np.zeros((3, 0))
        self._left, self._grows, self._ceilings = self._numbers
        self._rates: Floats = np.zeros(0)
        self.holds: Ints = np.zeros(0, dtype=np.int64)
        """The links that hold back a flow now."""
        self._by_own_ceiling = False
        self._new: list[Flow[K]] = []
        self._stale = False
        self._ends: Floats | None = None
        """Seconds until each flow ends, once they are computed."""

    def __len__(self) -> int:
        return len(self._keys) + len(self._new)

    def begin(self, flow: Flow[K]) -> None:
        """Add a flow that begins now."""
        self._new.append(flow)
        self._stale = True

    def stop(self, keys: Iterable[K]) -> dict[K, float]:
        """End flows before they are done; return the bytes that each of them has left."""
        gone = set(keys)
        self._share()
        places = [at for at, key in enumerate(self._keys) if key in gone]
        found = {self._keys[at]: max(0.0, float(self._left[at])) for at in places}
        self._remove(places)
        return found

    def left(self) -> dict[K, float]:
        """Return the bytes that each flow has left now."""
        self._share()
        return dict(zip(self._keys, np.maximum(self._left, 0.0).tolist(), strict=True))

    def rates_now(self) -> Floats:
        """Return the bytes per second through each link now."""
        self._share()
        return self.link_rates

    def links_changed(self) -> None:
        """Share anew, because capacities have changed."""
        self._stale = True

    def grow(self, grows: Callable[[K], float]) -> None:
        """Set anew what producers add to each flow."""
        self._share()
        self._grows[:] = [grows(key) for key in self._keys]
        self._ends = None

    @property
    def next_end_s(self) -> float:
        """Return when the next flow ends if nothing changes; infinity if none ever does."""
        return self.now_s + float(self._seconds_left().min(initial=inf))

    def endless(self) -> list[tuple[K, float, float]]:
        """Return the flows that get no more than producers add: key, rate, growth."""
        self._share()
        never = np.flatnonzero((self._rates <= self._grows) & (self._left > _NEARLY))
        return [(self._keys[at], float(self._rates[at]), float(self._grows[at])) for at in never]

    def advance(self, to_s: float) -> list[tuple[K, float]]:
        """Go on to a moment, or to the first ends before it; return what has ended, and when."""
        seconds, began_s = self._seconds_left(), self.now_s
        first_s = float(seconds.min(initial=inf))
        until_s = min(to_s, self._after(began_s + first_s))
        took_s = max(0.0, until_s - began_s)
        if took_s > 0:
            self._go(took_s)
        self.now_s = max(began_s, until_s)
        latest_s = took_s * (1 + _ROUNDING) + ulp(self.now_s)
        if first_s > latest_s:
            return []
        gone = np.flatnonzero(seconds <= latest_s)
        ended = sorted(zip(seconds[gone].tolist(), gone.tolist(), strict=True))
        found = [(self._keys[at], began_s + end_s) for end_s, at in ended]
        self._remove(gone.tolist())
        return found

    def _after(self, at_s: float) -> float:
        """Return the next moment at which ends are dealt with."""
        return at_s if not self.grain_s or at_s == inf else ceil(at_s / self.grain_s) * self.grain_s

    def _seconds_left(self) -> Floats:
        self._share()
        if self._ends is None:
            net = self._rates - self._grows
            seconds = np.full(len(net), inf)
            np.divide(self._left, net, out=seconds, where=net > 0)
            seconds[self._left <= _NEARLY] = 0.0
            self._ends = seconds
        return self._ends

    def _go(self, seconds: float) -> None:
        """Let time pass at the present rates."""
        self.link_bytes += self.link_rates * seconds
        self.held_s[self.holds] += seconds
        np.maximum(self.most_rates, self.link_rates, out=self.most_rates)
        self.own_s += seconds * self._by_own_ceiling
        self.idle_s += seconds * (not self._keys)
        self._left += (self._grows - self._rates) * seconds
        self._ends = None
        self._passed(seconds)

    def _remove(self, places: list[int]) -> None:
        stays = np.ones(self._links.shape[1], dtype=bool)
        stays[places] = False
        if len(places) > _FEW:
            self._keys = list(compress(self._keys, stays.tolist()))
        else:
            for at in reversed(places):
                del self._keys[at]
        rest = stays.nonzero()[0]
        self._links, self._numbers = self._links[:, rest], self._numbers[:, rest]
        self._left, self._grows, self._ceilings = self._numbers
        self._stale = True

    def _share(self) -> None:
        """Add the new flows and share the links, if anything has changed."""
        if not self._stale:
            return
        if (more := len(self.capacity) - len(self.held_s)) > 0:
            for name in ("link_bytes", "held_s", "most_rates"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(more)))
        if self._new:
            keys, links, *numbers = zip(*self._new, strict=True)
            self._keys += keys
            self._links = np.concatenate((self._links, np.array(links, dtype=np.int64).T), axis=1)
            self._numbers = np.concatenate((self._numbers, np.array(numbers)), axis=1)
            self._left, self._grows, self._ceilings = self._numbers
            self._new = []
        self._rates, held_by, self.link_rates = self._max_min(self._links, self.capacity, self._ceilings)
        held = np.zeros(len(self.capacity) + 1, dtype=bool)  # the last one stands for OWN_CEILING
        held[held_by] = True
        self._by_own_ceiling = bool(held[OWN_CEILING])
        self.holds = np.flatnonzero(held[:OWN_CEILING])
        self._stale, self._ends = False, None
