"""What all rehearsals on one snapshot share: numbers of links and log dirs, sizes, and the ways of copies.

out      what a broker sends to replicas that catch up       the leader's throttle, network, clients
into     what it receives for such replicas                  the follower's throttle, network, clients
within   what it copies between its log dirs                 the throttle of log dirs
disk     what is written into one log dir
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from restow.model import ANY_DIR
from restow.plan.flow.clients import broker_ids
from restow.plan.flow.copies import CopyKey, Itinerary, Leg
from restow.plan.schedule.traffic import Way

if TYPE_CHECKING:
    from restow.model import BrokerId, Snapshot, TopicPartition
    from restow.plan.flow.copies import Start
    from restow.plan.flow.loads import ClientLoads, Holding
    from restow.plan.search.problem import Floats

WAYS = {Way.SENT: 0, Way.RECEIVED: 1, Way.WITHIN: 2}


class Ground:
    """Numbers the links of a cluster: three for each broker, one for each log dir, and one without limit."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.brokers = broker_ids(snapshot)
        self.index = {broker: at for at, broker in enumerate(self.brokers)}
        self.log_dirs: tuple[tuple[BrokerId, str], ...] = tuple(
            [(broker.id, each.path) for broker in snapshot.brokers for each in broker.log_dirs]
            + [(broker, ANY_DIR) for broker in self.brokers]
        )
        self._dir_index = {place: at for at, place in enumerate(self.log_dirs)}
        self.first_dir = 3 * len(self.brokers)
        self._into = {broker: at + len(self.brokers) for broker, at in self.index.items()}
        self.nothing = self.first_dir + len(self.log_dirs)
        """A link without limit, for copies that pass fewer links than others."""
        self._holdings: dict[TopicPartition, Holding] = {}
        self._itineraries: dict[TopicPartition, Itinerary] = {}
        self._growing: dict[tuple[str, int], float] = {}

    def of(self, way: Way, broker: BrokerId) -> int:
        """Return the number of one way through a broker."""
        return WAYS[way] * len(self.brokers) + self.index[broker]

    def dir_of(self, broker: BrokerId, path: str | None) -> int:
        """Return the index of a log dir among all; an unknown one is its broker's `any`."""
        found = self._dir_index.get((broker, path or ANY_DIR))
        return self._dir_index[broker, ANY_DIR] if found is None else found

    def holding(self, name: TopicPartition, loads: ClientLoads) -> Holding:
        """Return what a partition holds at the start of a run."""
        known = self._holdings.get(name)
        if known is None:
            known = self._holdings[name] = loads.holding(self.snapshot, name)
        return known

    def growing(self, loads: ClientLoads) -> dict[tuple[str, int], float]:
        """Return the bytes per second that producers add on average, by topic and log dir."""
        if not self._growing:
            for (topic, broker, path), grows in loads.table(self.snapshot).growing.items():
                at = topic, self.dir_of(broker, path)
                self._growing[at] = self._growing.get(at, 0.0) + grows
        return self._growing

    def itinerary(self, start: Start, loads: ClientLoads) -> Itinerary:
        """Return the ways of a step's copies. The last one of each partition is kept."""
        name = start.step.partition
        known = self._itineraries.get(name)
        if known is not None and known.start.step is start.step and known.start == start:
            return known
        step, arrivals, holding = start.step, start.arrivals, self.holding(name, loads)
        before, after = step.before, step.after
        within = [broker for broker in arrivals if broker in before]
        legs = [self.between(start.sender, CopyKey(name, each), arrivals.get(each)) for each in step.adding]
        legs += [self._within(CopyKey(name, each, True), arrivals[each]) for each in within]
        legs.sort()
        leaves = []
        for broker in before:
            if broker not in after or broker in within:
                path, own = holding.places.get(broker, (None, None))
                leaves.append((self.dir_of(broker, path), own))
        found = Itinerary(start, start.key, tuple(legs), tuple(leaves), holding)
        self._itineraries[name] = found
        return found

    def between(self, sender: BrokerId | None, key: CopyKey, path: str | None) -> Leg:
        """Return the way of a copy from one broker to another."""
        out = self.nothing if sender is None else self.index[sender]
        place = self.dir_of(key.broker, path)
        return Leg(key, (out, self._into[key.broker], self.first_dir + place), place)

    def _within(self, key: CopyKey, path: str) -> Leg:
        """Return the way of a copy between two log dirs of a broker."""
        place = self.dir_of(key.broker, path)
        return Leg(key, (self.of(Way.WITHIN, key.broker), self.nothing, self.first_dir + place), place)

    @cached_property
    def used(self) -> Floats:
        """The bytes in use of each log dir: of its file system, or of its replicas if that is unknown."""
        used = np.zeros(len(self.log_dirs))
        known = np.zeros(len(self.log_dirs), dtype=bool)
        for broker in self.snapshot.brokers:
            for each in broker.log_dirs:
                if each.total_bytes is not None and each.usable_bytes is not None:
                    at = self.dir_of(broker.id, each.path)
                    used[at], known[at] = each.total_bytes - each.usable_bytes, True
        if not known[: len(self.log_dirs) - len(self.brokers)].all():
            for partition in self.snapshot.partitions:
                for copy in partition.copies:
                    at = self.dir_of(copy.broker, copy.log_dir)
                    used[at] += 0 if known[at] else copy.size_bytes
        return used
