"""What clients send through every broker, and how fast log dirs grow by it, hour by hour of the week."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from restow.model.load import WEEK_HOURS

if TYPE_CHECKING:
    from restow.model import BrokerId, Snapshot
    from restow.plan.flow.loads import ClientLoads
    from restow.plan.search.problem import Floats

OUT, IN = 0, 1


def broker_ids(snapshot: Snapshot) -> tuple[BrokerId, ...]:
    """Return all brokers in order: those that are there, and those that only hold replicas."""
    ids = {broker.id for broker in snapshot.brokers}
    ids.update(broker for each in snapshot.partitions for broker in each.replicas)
    return tuple(sorted(ids))


class ClientTable:
    """The loads of a snapshot's brokers; made once for all runs on it."""

    def __init__(self, snapshot: Snapshot, loads: ClientLoads) -> None:
        brokers = broker_ids(snapshot)
        index = {broker: at for at, broker in enumerate(brokers)}
        topics = {topic.name: number for number, topic in enumerate(snapshot.topics)}
        self._size = len(brokers)
        self.growing: defaultdict[tuple[str, BrokerId, str | None], float] = defaultdict(float)
        """Bytes per second that are written to each topic in each log dir, on average."""
        places, kinds, rates = [], [], []
        for name, partition in snapshot.all_partitions():
            load, lies = loads.of(name), partition.log_dirs
            grows = loads.growth(name, partition.size_bytes)
            for broker in partition.replicas:
                leads = broker == partition.leader
                places.append(index[broker])
                kinds.append(topics[name.topic])
                rates.append(
                    (load.leader_out, load.leader_in) if leads else (load.follower_out, load.follower_in)
                )
                self.growing[name.topic, broker, lies.get(broker)] += grows
        self._places, self._kinds = np.array(places, dtype=np.int64), np.array(kinds, dtype=np.int64)
        self._rates = np.array(rates, dtype=np.float64).reshape(-1, 2).T
        usual = np.ones(WEEK_HOURS)
        self._shares = [
            np.array([hours.get(topic, usual) for topic in topics]).reshape(-1, WEEK_HOURS)
            for hours in (loads.hours_out, loads.hours_in)
        ]
        self._by_hour: dict[int, Floats] = {}

    def rates(self, hour: int) -> Floats:
        """Return what clients, and replicas in sync, send through all brokers in an hour: out, and in."""
        if hour not in self._by_hour:
            weights = [self._rates[way] * self._shares[way][self._kinds, hour] for way in (OUT, IN)]
            self._by_hour[hour] = np.array(
                [np.bincount(self._places, each, minlength=self._size) for each in weights]
            )
        return self._by_hour[hour]
