"""The links of a cluster: what each broker receives, sends and copies within, and its disks.

out      what a broker sends to replicas that catch up       the leader's throttle, network, clients
into     what it receives for such replicas                  the follower's throttle, network, clients
within   what it copies between its log dirs                 the throttle of log dirs
disk     what is written into one log dir
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from restow.model import ANY_DIR
from restow.plan.flow.clients import broker_ids
from restow.plan.schedule.traffic import Way

if TYPE_CHECKING:
    from restow.model import BrokerId, Snapshot
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.sharing import Floats

_LEAST_SHARE = 0.05
"""Copies get at least this share of a broker's rate, however busy clients keep it: all of them compete."""
_WAYS = {Way.SENT: 0, Way.RECEIVED: 1, Way.WITHIN: 2}
_SAYS = {Way.SENT: "sends", Way.RECEIVED: "receives", Way.WITHIN: "copies between its log dirs"}
WIDTH = 4
"""How many links a copy passes: out, into, disk and the pair; or within and disk."""


class Links:
    """Numbers the links of a cluster, and keeps their capacities."""

    def __init__(self, snapshot: Snapshot, constants: Constants) -> None:
        self._constants = constants
        self.brokers = broker_ids(snapshot)
        self._index = {broker: at for at, broker in enumerate(self.brokers)}
        self.log_dirs: tuple[tuple[BrokerId, str], ...] = tuple(
            [(broker.id, each.path) for broker in snapshot.brokers for each in broker.log_dirs]
            + [(broker, ANY_DIR) for broker in self.brokers]
        )
        self._dir_index = {place: at for at, place in enumerate(self.log_dirs)}
        self.first_dir = 3 * len(self.brokers)
        self.nothing = self.first_dir + len(self.log_dirs)
        """A link without limit, for copies that pass fewer links than others."""
        self._pairs: dict[tuple[BrokerId, BrokerId], int] = {}
        self._throttles = np.full((3, len(self.brokers)), inf)
        self._clients = np.zeros((2, len(self.brokers)))
        self._most_clients = self._clients
        self._measured = np.full((3, len(self.brokers)), inf)
        self.throttled = np.zeros(self.nothing + 1, dtype=bool)
        """Whether a throttle limits each link."""
        self.capacity: Floats = np.full(self.nothing + 1, inf)
        self.refresh()

    @property
    def most_rate(self) -> float:
        """Return what one broker can receive without a throttle."""
        return self._constants.broker_rate

    def of(self, way: Way, broker: BrokerId) -> int:
        """Return the number of one way through a broker."""
        return _WAYS[way] * len(self.brokers) + self._index[broker]

    def dir_of(self, broker: BrokerId, path: str | None) -> int:
        """Return the index of a log dir among all; an unknown one is its broker's `any`."""
        found = self._dir_index.get((broker, path or ANY_DIR))
        return self._dir_index[broker, ANY_DIR] if found is None else found

    def copy_between(self, sender: BrokerId | None, receiver: BrokerId, path: str | None) -> tuple[int, ...]:
        """Return the links of a copy from one broker to another."""
        out = self.nothing if sender is None else self.of(Way.SENT, sender)
        into, disk = self.of(Way.RECEIVED, receiver), self.first_dir + self.dir_of(receiver, path)
        return out, into, disk, self._pair(sender, receiver)

    def copy_within(self, broker: BrokerId, path: str) -> tuple[int, ...]:
        """Return the links of a copy between two log dirs of a broker."""
        disk = self.first_dir + self.dir_of(broker, path)
        return self.of(Way.WITHIN, broker), self.nothing, disk, self.nothing

    def _pair(self, sender: BrokerId | None, receiver: BrokerId) -> int:
        """Return the link between two brokers, if a follower's fetches could be what limits them."""
        ceiling = self._constants.pair_ceiling
        if sender is None or ceiling >= self._constants.broker_rate:
            return self.nothing
        found = self._pairs.get((sender, receiver))
        if found is None:
            found = self._pairs[sender, receiver] = len(self.capacity)
            self.capacity = np.append(self.capacity, ceiling)
            self.throttled = np.append(self.throttled, [False])
        return found

    def throttle(self, way: Way, broker: BrokerId, rate: float | None) -> None:
        """Set or, with None, remove a throttle; `refresh` makes it count."""
        if broker in self._index:
            self._throttles[_WAYS[way], self._index[broker]] = inf if rate is None else rate

    def throttle_all(self, rate: float | None, dir_rate: float | None) -> None:
        """Throttle every broker."""
        self._throttles[:2], self._throttles[2] = rate or inf, dir_rate or inf

    def set_clients(self, rates: Floats) -> None:
        """Set what clients, and replicas in sync, send through every broker: out, and in."""
        self._clients, self._most_clients = rates, np.maximum(rates, self._most_clients)

    def slow(self, way: Way, broker: BrokerId, rate: float) -> None:
        """Limit a broker to what was measured there; `refresh` makes it count."""
        self._measured[_WAYS[way], self._index[broker]] = rate

    def client_rate(self, way: Way, broker: BrokerId) -> float:
        """Return the most that clients have sent through a broker one way."""
        return float(self._most_clients[_WAYS[way], self._index[broker]])

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
        for (sender, receiver), number in self._pairs.items():
            if number == link:
                return f"the fetches of broker {receiver} from broker {sender}"
        return "nothing"
