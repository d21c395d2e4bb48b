"""The capacities of a cluster's links: what throttles, network, disks and clients leave for copies."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from restow.plan.flow.ground import WAYS
from restow.plan.schedule.traffic import Way

if TYPE_CHECKING:
    from restow.model import BrokerId
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.ground import Ground
    from restow.plan.search.problem import Floats

_LEAST_SHARE = 0.05
"""Copies get at least this share of a broker's rate, however busy clients keep it: all of them compete."""
_SAYS = {Way.SENT: "sends", Way.RECEIVED: "receives", Way.WITHIN: "copies between its log dirs"}
_IN = 1


class Links:
    """Keeps the capacities of links.

    A copy passes those of its leg (out, into and disk; or within and disk), and `beyond` them that of its
    pair of brokers, if their fetches may be a limit, and one that all brokers share, if they do.
    """

    def __init__(self, ground: Ground, constants: Constants) -> None:
        self._constants = constants
        self.brokers, self.log_dirs, self._index = ground.brokers, ground.log_dirs, ground.index
        self.of, self.dir_of = ground.of, ground.dir_of
        self.first_dir, self.nothing = ground.first_dir, ground.nothing
        self.pairs_matter = constants.pair_ceiling < constants.broker_rate
        self._pairs: dict[tuple[BrokerId, BrokerId], int] = {}
        self._throttles = np.full((3, len(self.brokers)), inf)
        self._clients = np.zeros((2, len(self.brokers)))
        self._most_clients = self._clients
        self._measured = np.full((3, len(self.brokers)), inf)
        self._shared = self.nothing + 1
        shares = constants.total_rate < inf
        self.beyond: tuple[int, ...] = (self.nothing, self._shared) if shares else (self.nothing,)
        self.width = 3 + len(self.beyond)
        """How many links each copy passes."""
        self.throttled = np.zeros(self.nothing + len(self.beyond), dtype=bool)
        """Whether a throttle limits each link."""
        self.capacity: Floats = np.full(self.nothing + len(self.beyond), inf)
        self.refresh()

    @property
    def most_rate(self) -> float:
        """Return what one broker can receive without a throttle."""
        return self._constants.broker_rate

    def beyond_between(self, sender: BrokerId | None, receiver: BrokerId) -> tuple[int, ...]:
        """Return the further links of a copy between two brokers."""
        if sender is None or not self.pairs_matter:
            return self.beyond
        return (self._pair(sender, receiver), *self.beyond[1:])

    @property
    def beyond_within(self) -> tuple[int, ...]:
        """Return the further links of a copy within a broker: none has a limit."""
        return (self.nothing,) * len(self.beyond)

    def _pair(self, sender: BrokerId, receiver: BrokerId) -> int:
        """Return the link between two brokers, which a follower's fetches limit."""
        found = self._pairs.get((sender, receiver))
        if found is None:
            found = self._pairs[sender, receiver] = len(self.capacity)
            self.capacity = np.append(self.capacity, self._constants.pair_ceiling)
            self.throttled = np.append(self.throttled, [False])
        return found

    def throttle(self, way: Way, broker: BrokerId, rate: float | None) -> None:
        """Set or, with None, remove a throttle; `refresh` makes it count."""
        if broker in self._index:
            self._throttles[WAYS[way], self._index[broker]] = inf if rate is None else rate

    def throttle_all(self, rate: float | None, dir_rate: float | None) -> None:
        """Throttle every broker."""
        self._throttles[:2], self._throttles[2] = rate or inf, dir_rate or inf

    def set_clients(self, rates: Floats) -> None:
        """Set what clients, and replicas in sync, send through every broker: out, and in."""
        self._clients, self._most_clients = rates, np.maximum(rates, self._most_clients)

    def slow(self, way: Way, broker: BrokerId, rate: float) -> None:
        """Limit a broker to what was measured there; `refresh` makes it count."""
        self._measured[WAYS[way], self._index[broker]] = rate

    def client_rate(self, way: Way, broker: BrokerId) -> float:
        """Return the most that clients have sent through a broker one way."""
        return float(self._most_clients[WAYS[way], self._index[broker]])

    def refresh(self) -> None:
        """Compute the capacities anew."""
        constants, size = self._constants, len(self.brokers)
        free = np.empty((3, size))
        free[:2] = np.maximum(constants.broker_rate - self._clients, _LEAST_SHARE * constants.broker_rate)
        free[2] = constants.dir_rate
        free = np.minimum(free, self._measured)
        shares = (constants.throttle_share, constants.throttle_share, constants.dir_share)
        passes = self._throttles * np.array(shares)[:, None]
        self.throttled[: 3 * size] = (passes <= free).ravel()
        self.capacity[: 3 * size] = np.minimum(free, passes).ravel()
        if self._shared in self.beyond:
            total = constants.total_rate
            self.capacity[self._shared] = max(total - self._clients[_IN].sum(), _LEAST_SHARE * total)

    def say(self, link: int, *, throttled: bool) -> str:
        """Name a link, and whether a throttle limits it, for a reader."""
        size = len(self.brokers)
        if link < 3 * size:
            way = tuple(Way)[(1, 0, 2)[link // size]]
            limit = "as much as its throttle allows" if throttled else "as much as it can"
            return f"broker {self.brokers[link % size]} {_SAYS[way]} {limit}"
        if link < self.nothing:
            broker, path = self.log_dirs[link - self.first_dir]
            return f"the log dir {path} of broker {broker}"
        if link in self.beyond[1:]:
            return "all brokers together receive as much as they can"
        for (sender, receiver), number in self._pairs.items():
            if number == link:
                return f"the fetches of broker {receiver} from broker {sender}"
        return "nothing"
