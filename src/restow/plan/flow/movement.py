"""Steps under way as flows over a cluster's links: when each ends, and what that does to disks.

The executor's schedule says which steps are under way. A step ends when all of its copies are in sync, and
the controller has noticed. The files of removed replicas take room for a while longer.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import count
from math import floor, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.model.load import WEEK_HOURS
from restow.plan.flow.flows import Flow, Flows
from restow.plan.flow.history import FlowHistory
from restow.plan.flow.links import Links
from restow.plan.flow.loads import ClientLoads
from restow.plan.flow.sharing import max_min

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.model import BrokerId, Snapshot, TopicPartition
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.copies import CopyKey, Itinerary, Leg, Start
    from restow.plan.flow.loads import Holding
    from restow.plan.flow.sharing import Sharing


class Finished(NamedTuple):
    """A step that has ended, and when."""

    start: Start
    at_s: float


class _Open(NamedTuple):
    """A step under way, and its replicas that are still copied."""

    way: Itinerary
    copies: set[CopyKey]


class Movement:
    """The steps under way on one cluster."""

    def __init__(
        self,
        snapshot: Snapshot,
        constants: Constants,
        loads: ClientLoads | None = None,
        *,
        grain_s: float = 0.0,
        share: Sharing = max_min,
    ) -> None:
        self._snapshot, self.constants = snapshot, constants
        self.loads = loads or ClientLoads()
        self.ground = self.loads.ground(snapshot)
        self.links = Links(self.ground, constants)
        self.history = FlowHistory(self.links)
        self.used = self.ground.used.copy()
        """Bytes in each log dir now."""
        self.before = self.used.copy()
        self.peak, self.peak_s = self.used.copy(), np.zeros(len(self.used))
        self.throttled_s = np.zeros(3 * len(self.links.brokers))
        """Seconds in which the throttle of each link held back a copy."""
        self._grows = np.zeros(len(self.used))
        self._growing: defaultdict[tuple[str, int], float] = defaultdict(float)
        """Bytes per second that producers add on average, by topic and log dir; `_grows` has this hour's."""
        self._hours, self._edge_s, self._hours_left = 0, inf, WEEK_HOURS
        self._hour = self.loads.hour()
        self.flows: Flows[CopyKey] = Flows(
            self.links.capacity, self.links.width, grain_s=grain_s, share=share, passed=self._passed
        )
        self._open: dict[tuple[TopicPartition, BrokerId | None], _Open] = {}
        self._copies: dict[CopyKey, tuple[_Open, Leg]] = {}
        self._redirected: set[CopyKey] = set()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = count()
        self._settling: dict[float, list[_Open]] = {}
        self._finished: list[Finished] = []
        self._woken = False
        if self.loads.known:
            self._growing.update(self.ground.growing(self.loads))
            self._begin_hour()

    @property
    def now_s(self) -> float:
        return self.flows.now_s

    @property
    def under_way(self) -> int:
        return len(self._open)

    def begin(self, starts: Iterable[Start], *, at_once: bool = False) -> None:
        """Begin steps now; their copies begin when the brokers have heard of them, or at once."""
        moving, now_s = [], self.now_s
        for start in starts:
            way = self.ground.itinerary(start, self.loads)
            self._open[way.key] = opened = _Open(way, set())
            for leg in way.legs:
                opened.copies.add(leg.key)
                self._copies[leg.key] = opened, leg
            if way.legs:
                moving.append(opened)
            else:
                self._settle(opened, now_s)
        if moving:
            after_s = 0.0 if at_once else self.constants.begin_s
            self.at(now_s + after_s, lambda: self._begin_copies(moving))

    def cancel(self, partition: TopicPartition, broker: BrokerId | None = None) -> None:
        """Stop a reassignment, or a broker's copy to another log dir, and free what it has written."""
        opened = self._open.pop((partition, broker), None)
        if opened is not None:
            size = self.size_of(partition)
            places = {key: self._copies.pop(key)[1].place for key in opened.copies}
            for key, left in self.flows.stop(opened.copies).items():
                self.used[places[key]] -= max(0.0, size - left)

    def at(self, at_s: float, what: Callable[[], object]) -> None:
        """Do something at a moment, or at the beginning of its grain."""
        heapq.heappush(self._events, (self._moment(at_s), next(self._serial), what))

    def _moment(self, at_s: float) -> float:
        grain_s = self.flows.grain_s
        return max(self.now_s, floor(at_s / grain_s) * grain_s) if grain_s else at_s

    def say(self, link: int) -> str:
        """Name a link that held back copies, and what limited it most of that time."""
        by_throttle_s = self.throttled_s[link] if link < len(self.throttled_s) else 0.0
        return self.links.say(link, throttled=bool(by_throttle_s > self.flows.held_s[link] / 2))

    def wake(self) -> None:
        """Let `advance` return now: something outside has to be decided."""
        self._woken = True

    def links_changed(self) -> None:
        """Share anew, because a throttle or a client's load has changed."""
        self.links.refresh()
        self.flows.capacity = self.links.capacity
        self.flows.links_changed()

    @property
    def next_s(self) -> float:
        """Return the next moment at which something happens by itself."""
        if self._events and self._events[0][0] <= self.now_s:
            return self._events[0][0]
        edge_s = self._edge_s if len(self.flows) else inf
        return min(self._events[0][0] if self._events else inf, self.flows.next_end_s, edge_s)

    def advance(self, to_s: float) -> list[Finished]:
        """Go on to a moment, or to the end of the first steps before it; return those that have ended."""
        self._woken = False
        while not self._finished and not self._woken:
            due_s = min(self._events[0][0] if self._events else inf, to_s)
            if due_s == inf and self.next_s == inf:
                break
            due_s = min(due_s, self._edge_s)
            if (
                due_s > self.now_s or not self.flows.grain_s
            ):  # in a grain, what begins and ends is shared once
                for key, at_s in self.flows.advance(due_s):
                    self._copy_ended(key, at_s)
            while self._events and self._events[0][0] <= self.now_s:
                heapq.heappop(self._events)[2]()
            if self.now_s >= self._edge_s:
                self._hours += 1
                self._begin_hour()
            if self.now_s >= to_s:
                break
        finished, self._finished = self._finished, []
        return finished

    def size_of(self, partition: TopicPartition) -> float:
        """Return the bytes of the leader's replica now."""
        return self._size(partition.topic, self.ground.holding(partition, self.loads))

    def _size(self, topic: str, holding: Holding) -> float:
        size, written, most = holding[:3]
        if not written or size >= most:
            return size
        return min(size + written * self.loads.usual_s(topic, self.flows.now_s), most)

    def left(self) -> dict[CopyKey, float]:
        """Return the bytes that each copy under way has left."""
        return self.flows.left()

    def copying(self, partition: TopicPartition) -> set[CopyKey]:
        """Return the copies of a partition's step that are not in sync yet."""
        opened = self._open.get((partition, None))
        return set() if opened is None else set(opened.copies)

    def arrivals(self, partition: TopicPartition) -> Mapping[BrokerId, str]:
        """Return the log dirs that a partition's step copies into."""
        opened = self._open.get((partition, None))
        return {} if opened is None else opened.way.start.arrivals

    def redirect(self, key: CopyKey, sender: BrokerId | None, left_bytes: float, *, stops: bool) -> None:
        """Let a copy go on from another broker, or stop it until it is redirected again."""
        self.flows.stop([key])
        self._redirected.add(key)
        if not stops:
            opened, _ = self._copies[key]
            leg = self.ground.between(sender, key, opened.way.start.arrivals.get(key.broker))
            self._copies[key] = opened, leg
            route = leg.links + self.links.beyond_between(sender, key.broker)
            self.flows.begin(Flow(key, route, left_bytes, self._written(key), self.constants.copy_ceiling))
            self.flows.capacity = self.links.capacity

    def endless(self) -> list[TopicPartition]:
        """Return the partitions whose copies get less than producers write: they would never end."""
        return sorted({key.partition for key, _, _ in self.flows.endless()})

    def _begin_copies(self, opened: Iterable[_Open]) -> None:
        ceiling, links = self.constants.copy_ceiling, self.links
        within, redirected = links.beyond_within, self._redirected
        for each in opened:
            way, _ = each
            if self._open.get(way.key) is not each:
                continue
            for leg in way.legs:
                key = leg.key
                if key in redirected:
                    continue
                beyond = within if key.within else links.beyond_between(way.start.sender, key.broker)
                left = self.to_copy(key, way)
                grows = self._grows_now(key.partition.topic, way.holding.written)
                self.flows.begin(Flow(key, leg.links + beyond, left, grows, ceiling))
        self.flows.capacity = links.capacity

    def to_copy(self, key: CopyKey, way: Itinerary, /) -> float:
        """Return the bytes that a copy has to bring when it begins."""
        if key.within and key.broker in way.holding.places:
            return way.holding.places[key.broker][1]
        whole, there = self._whole(way), way.holding.strays.get(key.broker)
        return whole if there is None else max(0.0, whole - there)

    def _whole(self, way: Itinerary) -> float:
        """Return the bytes of the leader's replica now; as the plan knows them if the snapshot does not."""
        step = way.start.step
        return self._size(step.partition.topic, way.holding) or float(step.size_bytes)

    def _copy_ended(self, key: CopyKey, at_s: float) -> None:
        opened, leg = self._copies.pop(key)
        way, copies = opened
        copies.discard(key)
        self._redirected.discard(key)
        self._hours_left = WEEK_HOURS
        if way.holding.written:
            self._grow(way, leg.place, 1)
        if not copies:
            self._settle(opened, at_s)

    def _settle(self, opened: _Open, at_s: float) -> None:
        """End a step a while after its last copy; those of one moment share an event."""
        at_s = self._moment(at_s + self.constants.settle_s)
        settling = self._settling.get(at_s)
        if settling is None:
            settling = self._settling[at_s] = []
            self.at(at_s, lambda: self._end(self._settling.pop(at_s)))
        settling.append(opened)

    def _end(self, settled: list[_Open]) -> None:
        """End steps; the room of replicas that they replace is freed a while later."""
        now_s, gone, open_ones = self.flows.now_s, [], self._open
        for opened in settled:
            way = opened.way
            if open_ones.get(way.key) is not opened:
                continue
            del open_ones[way.key]
            self._finished.append(Finished(way.start, now_s))
            for place, own in way.leaves:
                gone.append((place, self._whole(way) if own is None else own))
                if way.holding.written:
                    self._grow(way, place, -1)
        if gone:
            self.at(now_s + self.constants.delete_delay_s, lambda: self._release(gone))

    def _release(self, gone: list[tuple[int, float]]) -> None:
        for place, size in gone:
            self.used[place] -= size

    def _grow(self, way: Itinerary, place: int, sign: int) -> None:
        """Let a log dir grow by what is written to a partition, or no longer."""
        topic, holding = way.start.step.partition.topic, way.holding
        if self.loads.known and self._size(topic, holding) < holding.most:
            self._growing[topic, place] += sign * holding.written
            self._grows[place] += sign * self._grows_now(topic, holding.written)

    def _grows_now(self, topic: str, written: float) -> float:
        """Return what producers write in this hour, if they write so much on average."""
        return written * self.loads.share(topic, self._hour) if written and self.loads.hours_in else written

    def _written(self, key: CopyKey) -> float:
        return self._grows_now(key.partition.topic, self._copies[key][0].way.holding.written)

    def _passed(self, seconds: float) -> None:
        first = self.links.first_dir
        into = self.flows.link_rates[first : first + len(self.used)]
        self.used += (into + self._grows) * seconds
        now_s = self.now_s + seconds
        holds = self.flows.holds
        self.throttled_s[holds[self.links.throttled[holds]]] += seconds
        higher = self.used > self.peak
        self.peak[higher], self.peak_s[higher] = self.used[higher], now_s
        self.history.add(now_s - seconds, now_s, self.flows.link_rates, self.used)

    def _begin_hour(self) -> None:
        """Let clients do what they do in this hour of the week; after a week without an end there is none."""
        loads, hour = self.loads, self.loads.hour(self._hours)
        self._hour = hour
        self._grows[:] = 0.0
        for (topic, place), grows in self._growing.items():
            self._grows[place] += grows * loads.share(topic, hour)
        self.links.set_clients(loads.table(self._snapshot).rates(hour))
        self.links_changed()
        self.flows.grow(self._written)
        self._hours_left -= 1
        self._edge_s = loads.edge_s(self._hours + 1) if loads.by_hour and self._hours_left > 0 else inf
