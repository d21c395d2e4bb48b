"""Steps under way as flows over a cluster's links: when each ends, and what that does to disks.

The executor's schedule says which steps are under way. A step ends when all of its copies are in sync, and
the controller has noticed. The files of removed replicas take room for a while longer.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from math import floor, inf
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from restow.model import ANY_DIR
from restow.model.load import WEEK_HOURS
from restow.plan.flow.flows import Flow, Flows
from restow.plan.flow.history import FlowHistory
from restow.plan.flow.links import WIDTH, Links
from restow.plan.flow.loads import ClientLoads
from restow.plan.flow.sharing import max_min

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.model import BrokerId, Snapshot, Step, TopicPartition
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.sharing import Floats, Sharing

T = TypeVar("T")


class CopyKey(NamedTuple):
    """One replica that is copied: to a broker, or to another log dir of its broker."""

    partition: TopicPartition
    broker: BrokerId
    within: bool = False


class Start(NamedTuple):
    """A step to begin: the broker that sends, and the log dirs that receive."""

    step: Step
    sender: BrokerId | None
    arrivals: Mapping[BrokerId, str]
    only_within: bool = False
    """Whether it is a request to a broker about its log dirs, beside the partition's reassignment."""

    @property
    def key(self) -> tuple[TopicPartition, BrokerId | None]:
        """Return the partition, and the broker if only its log dirs are concerned."""
        return self.step.partition, next(iter(self.arrivals)) if self.only_within else None


class Finished(NamedTuple):
    """A step that has ended, and when."""

    start: Start
    at_s: float


@dataclass(slots=True)
class _Open:
    """A step under way, and its replicas that are still copied."""

    start: Start
    begun_s: float
    copies: set[CopyKey] = field(default_factory=set)


class _Size(NamedTuple):
    """The bytes of a partition at the start, what producers add per second on average, and up to how much."""

    bytes: float
    written: float
    most: float


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
        self.links = Links(snapshot, constants)
        self.history = FlowHistory(self.links)
        self.used = _used(snapshot, self.links)
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
        self._sizes: dict[TopicPartition, _Size] = {}
        """What partitions hold, of those that were asked for."""
        self.flows: Flows[CopyKey] = Flows(
            self.links.capacity, WIDTH, grain_s=grain_s, share=share, passed=self._passed
        )
        self._open: dict[tuple[TopicPartition, BrokerId | None], _Open] = {}
        self._copies: dict[CopyKey, _Open] = {}
        self._redirected: set[CopyKey] = set()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = count()
        self._settling: dict[float, list[_Open]] = {}
        self._releasing: dict[float, list[tuple[int, float]]] = {}
        self._finished: list[Finished] = []
        self._woken = False
        if self.loads.known:
            for (topic, broker, path), grows in self.loads.table(snapshot).growing.items():
                self._growing[topic, self.links.dir_of(broker, path)] += grows
            self._begin_hour()

    @property
    def now_s(self) -> float:
        return self.flows.now_s

    @property
    def under_way(self) -> int:
        return len(self._open)

    def begin(self, starts: Iterable[Start], *, at_once: bool = False) -> None:
        """Begin steps now; their copies begin when the brokers have heard of them, or at once."""
        opened = [_Open(start, self.now_s) for start in starts]
        for each in opened:
            step = each.start.step
            each.copies = {CopyKey(step.partition, broker) for broker in step.adding}
            within = _within(each.start)
            each.copies |= {CopyKey(step.partition, broker, True) for broker in within}
            self._open[each.start.key] = each
            self._copies.update(dict.fromkeys(each.copies, each))
            if not each.copies:
                self._settle(each, self.now_s)
        moving = [each for each in opened if each.copies]
        if moving:
            after_s = 0.0 if at_once else self.constants.begin_s
            self.at(self.now_s + after_s, lambda: self._begin_copies(moving))

    def cancel(self, partition: TopicPartition, broker: BrokerId | None = None) -> None:
        """Stop a reassignment, or a broker's copy to another log dir, and free what it has written."""
        opened = self._open.pop((partition, broker), None)
        if opened is not None:
            size = self.size_of(partition)
            for key in opened.copies:
                del self._copies[key]
            for key, left in self.flows.stop(opened.copies).items():
                self.used[self._dir_into(opened.start, key)] -= max(0.0, size - left)

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
        size, written, most = self._sizes.get(partition) or self._size_at_start(partition)
        if not written or size >= most:
            return size
        return min(size + written * self.loads.usual_s(partition.topic, self.flows.now_s), most)

    def _size_at_start(self, partition: TopicPartition) -> _Size:
        found = self._snapshot.partition(partition)
        size, loads = 0.0 if found is None else float(found.size_bytes), self.loads
        known = _Size(size, loads.of(partition).leader_in, max(size, loads.limits.get(partition, 0.0)))
        self._sizes[partition] = known
        return known

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
        return {} if opened is None else opened.start.arrivals

    def redirect(self, key: CopyKey, sender: BrokerId | None, left_bytes: float, *, stops: bool) -> None:
        """Let a copy go on from another broker, or stop it until it is redirected again."""
        self.flows.stop([key])
        self._redirected.add(key)
        if not stops:
            opened = self._copies[key]
            links = self.links.copy_between(sender, key.broker, opened.start.arrivals.get(key.broker))
            grows, ceiling = self._written(key), self.constants.copy_ceiling
            self.flows.begin(Flow(key=key, links=links, left_bytes=left_bytes, grows=grows, ceiling=ceiling))
            self.flows.capacity = self.links.capacity

    def endless(self) -> list[TopicPartition]:
        """Return the partitions whose copies get less than producers write: they would never end."""
        return sorted({key.partition for key, _, _ in self.flows.endless()})

    def _begin_copies(self, opened: Iterable[_Open]) -> None:
        ceiling, links = self.constants.copy_ceiling, self.links
        for each in opened:
            start = each.start
            if self._open.get(start.key) is not each:
                continue
            for key in sorted(each.copies - self._redirected):
                grows = self._written(key)
                path = start.arrivals.get(key.broker)
                if key.within:
                    route = links.copy_within(key.broker, path or ANY_DIR)
                else:
                    route = links.copy_between(start.sender, key.broker, path)
                left = self.to_copy(key, start.step)
                self.flows.begin(Flow(key=key, links=route, left_bytes=left, grows=grows, ceiling=ceiling))
        self.flows.capacity = links.capacity

    def to_copy(self, key: CopyKey, step: Step, /) -> float:
        """Return the bytes that a copy has to bring when it begins."""
        size = self.size_of(key.partition) or float(step.size_bytes)
        return self._own(key, size) if key.within else size

    def _own(self, key: CopyKey, size: float) -> float:
        found = self._snapshot.partition(key.partition)
        return size if found is None else float(found.own_sizes.get(key.broker, size))

    def _copy_ended(self, key: CopyKey, at_s: float) -> None:
        opened = self._copies.pop(key)
        self._redirected.discard(key)
        opened.copies.discard(key)
        self._hours_left = WEEK_HOURS
        if self.loads.known:
            self._grow(key.partition, self._dir_into(opened.start, key), 1)
        if not opened.copies:
            self._settle(opened, at_s)

    def _settle(self, opened: _Open, at_s: float) -> None:
        """End a step a while after its last copy; those of one moment share an event."""
        self._together(self._settling, at_s + self.constants.settle_s, opened, self._end)

    def _together(
        self, waiting: dict[float, list[T]], at_s: float, what: T, then: Callable[[list[T]], None]
    ) -> None:
        at_s = self._moment(at_s)
        if at_s not in waiting:
            waiting[at_s] = []
            self.at(at_s, lambda: then(waiting.pop(at_s)))
        waiting[at_s].append(what)

    def _end(self, settled: list[_Open]) -> None:
        for opened in settled:
            if self._open.get(opened.start.key) is opened:
                del self._open[opened.start.key]
                self._finished.append(Finished(opened.start, self.now_s))
                self._free(opened.start)

    def _free(self, start: Start) -> None:
        """Free the room of replaced replicas, a while after they were removed."""
        step = start.step
        found = self._snapshot.partition(step.partition)
        lies = {} if found is None else found.log_dirs
        size, at_s = self.size_of(step.partition) or float(step.size_bytes), self.now_s
        own = {} if found is None else found.own_sizes
        for broker in (*step.removing, *_within(start)):
            place = self.links.dir_of(broker, lies.get(broker))
            gone = float(own.get(broker, size))
            if self.loads.known:
                self._grow(step.partition, place, -1)
            self._together(
                self._releasing, at_s + self.constants.delete_delay_s, (place, gone), self._release
            )

    def _release(self, gone: list[tuple[int, float]]) -> None:
        for place, size in gone:
            self.used[place] -= size

    def _grow(self, partition: TopicPartition, place: int, sign: int) -> None:
        """Let a log dir grow by what is written to a partition, or no longer."""
        now = self.size_of(partition)
        _, written, most = self._sizes[partition]
        grows = sign * written if now < most else 0.0
        self._growing[partition.topic, place] += grows
        self._grows[place] += grows * self.loads.share(partition.topic, self._hour)

    def _written(self, key: CopyKey) -> float:
        return self.loads.written(key.partition, self._hour)

    def _dir_into(self, start: Start, key: CopyKey) -> int:
        return self.links.dir_of(key.broker, start.arrivals.get(key.broker))

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


def _within(start: Start) -> list[BrokerId]:
    """Return the brokers whose replica changes its log dir."""
    return [broker for broker in start.arrivals if broker in start.step.before]


def _used(snapshot: Snapshot, links: Links) -> Floats:
    """Return the bytes in use of each log dir: of its file system, or of its replicas if that is unknown."""
    used = np.zeros(len(links.log_dirs))
    known = np.zeros(len(links.log_dirs), dtype=bool)
    for broker in snapshot.brokers:
        for each in broker.log_dirs:
            if each.total_bytes is not None and each.usable_bytes is not None:
                at = links.dir_of(broker.id, each.path)
                used[at], known[at] = each.total_bytes - each.usable_bytes, True
    if not known[: len(links.log_dirs) - len(links.brokers)].all():
        for partition in snapshot.partitions:
            for copy in partition.copies:
                at = links.dir_of(copy.broker, copy.log_dir)
                used[at] += 0 if known[at] else copy.size_bytes
    return used
