"""A snapshot in numbers: by broker, log dir, rack and topic. Computed once for each snapshot."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.execute.throttle.throttles import RATES, REPLICAS
from restow.model.load import BYTES_IN, BYTES_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, LiveBroker, Snapshot, Topic, TopicPartition
    from restow.model.load import LoadModel

_NAMED = 1_000
"""So many partitions of a kind are named; the others are counted."""
NO_RACK = ""


@frozen
class LogDirSum:
    """One log dir: what replicas take of it, and what its file system has."""

    path: str
    replicas: int
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None
    failed: bool
    cordoned: bool


@frozen
class BrokerSum:
    """One broker. It is down if partitions have replicas on it but it is not among the live ones."""

    id: BrokerId
    rack: str
    address: str | None
    is_controller: bool
    replicas: int
    leaders: int
    preferred: int
    """Partitions of which it is the first replica, which should lead."""
    out_of_sync: int
    """Its replicas that are not in the ISR of their partition."""
    size_bytes: int | None
    answers: bool
    """Whether it described its log dirs, or may not do so for us."""
    bytes_in: float | None
    """Per second, by the load model; None if there is none. Followers receive, too."""
    bytes_out: float | None
    log_dirs: tuple[LogDirSum, ...]
    throttles: Mapping[str, str]

    @property
    def state(self) -> str:
        if self.address is None:
            return "down"
        if not self.answers:
            return "no answer"
        if any(each.failed for each in self.log_dirs):
            return "log dir failed"
        return "cordoned" if self.log_dirs and all(each.cordoned for each in self.log_dirs) else "up"


@frozen
class TopicSum:
    """One topic."""

    name: str
    partitions: int
    replication_factor: int
    """The largest of its partitions."""
    size_bytes: int
    """Of all replicas."""
    under_replicated: int
    offline: int
    moving: int
    internal: bool
    throttled: bool


@frozen
class ClusterSums:
    """All of it."""

    brokers: tuple[BrokerSum, ...]
    topics: tuple[TopicSum, ...]
    partitions: int
    size_bytes: int
    not_preferred: int
    under_replicated: int
    offline: int
    moving: int
    some_under_replicated: tuple[TopicPartition, ...]
    some_offline: tuple[TopicPartition, ...]
    some_moving: tuple[TopicPartition, ...]

    @property
    def racks(self) -> dict[str, list[BrokerSum]]:
        """The brokers by rack, in order; brokers without a rack are under an empty name."""
        found: dict[str, list[BrokerSum]] = {}
        for each in sorted(self.brokers, key=lambda broker: (broker.rack, broker.id)):
            found.setdefault(each.rack, []).append(each)
        return found

    @property
    def throttles(self) -> int:
        """How many brokers and topics have a throttle."""
        return sum(bool(each.throttles) for each in self.brokers) + sum(
            each.throttled for each in self.topics
        )


class _Counts:
    """Counters by broker and log dir, in one pass over all partitions."""

    def __init__(self) -> None:
        self.replicas: Counter[BrokerId] = Counter()
        self.leaders: Counter[BrokerId | None] = Counter()
        self.preferred: Counter[BrokerId] = Counter()
        self.out_of_sync: Counter[BrokerId] = Counter()
        self.dir_bytes: Counter[tuple[BrokerId, str]] = Counter()
        self.dir_replicas: Counter[tuple[BrokerId, str]] = Counter()
        self.not_preferred = 0
        self.under: list[TopicPartition] = []
        self.offline: list[TopicPartition] = []
        self.moving: list[TopicPartition] = []

    def add(self, names: Mapping[int, TopicPartition], topic: Topic) -> TopicSum:
        before = len(self.under), len(self.offline), len(self.moving)
        total = 0
        for each in topic.partitions:
            self.replicas.update(each.replicas)
            self.leaders[each.leader] += 1
            self.preferred[each.replicas[0]] += 1
            if len(each.isr) < len(each.replicas):
                self.under.append(names[each.number])
                self.out_of_sync.update(broker for broker in each.replicas if broker not in each.isr)
            if each.leader is None:
                self.offline.append(names[each.number])
            elif each.leader != each.replicas[0]:
                self.not_preferred += 1
            if each.moving:
                self.moving.append(names[each.number])
            for broker, path, size, _, _ in each.copies:
                self.dir_bytes[broker, path] += size
                self.dir_replicas[broker, path] += 1
                total += size
        return TopicSum(
            name=topic.name,
            partitions=len(topic.partitions),
            replication_factor=max((len(each.replicas) for each in topic.partitions), default=0),
            size_bytes=total,
            under_replicated=len(self.under) - before[0],
            offline=len(self.offline) - before[1],
            moving=len(self.moving) - before[2],
            internal=topic.internal,
            throttled=any(topic.configs.get(key) for key in REPLICAS),
        )


def sums_of(snapshot: Snapshot, load: LoadModel | None = None) -> ClusterSums:
    """Count everything in a snapshot; what brokers carry is known from a load model alone."""
    counts = _Counts()
    names = iter(snapshot.names)
    topics = tuple(
        counts.add({each.number: next(names) for each in topic.partitions}, topic)
        for topic in snapshot.topics
    )
    live = snapshot.broker
    rates = {} if load is None else _rates(snapshot, load)
    brokers = tuple(
        _broker(each, live.get(each), counts, snapshot, rates) for each in sorted({*live, *counts.replicas})
    )
    return ClusterSums(
        brokers=brokers,
        topics=topics,
        partitions=len(snapshot.partitions),
        size_bytes=sum(counts.dir_bytes.values()),
        not_preferred=counts.not_preferred,
        under_replicated=len(counts.under),
        offline=len(counts.offline),
        moving=len(counts.moving),
        some_under_replicated=tuple(counts.under[:_NAMED]),
        some_offline=tuple(counts.offline[:_NAMED]),
        some_moving=tuple(counts.moving[:_NAMED]),
    )


def _rates(snapshot: Snapshot, load: LoadModel) -> dict[str, Counter[BrokerId]]:
    """Return the bytes per second that each broker receives and sends, by resource."""
    found: dict[str, Counter[BrokerId]] = {}
    for name in (BYTES_IN, BYTES_OUT):
        resource = load.resources.get(name)
        if resource is None:
            continue
        carried: Counter[BrokerId] = Counter()
        sides = zip(resource.leading.tolist(), resource.following.tolist(), strict=True)
        for which, (leading, following) in zip(load.partitions, sides, strict=True):
            partition = snapshot.partition(which)
            for broker in () if partition is None else partition.replicas:
                carried[broker] += leading if broker == partition.leader else following  # type: ignore[union-attr]
        found[name] = carried
    return found


def _broker(
    broker: BrokerId,
    live: LiveBroker | None,
    counts: _Counts,
    snapshot: Snapshot,
    rates: Mapping[str, Counter[BrokerId]],
) -> BrokerSum:
    dirs = () if live is None else live.log_dirs
    told = live is not None and broker not in snapshot.unanswered
    return BrokerSum(
        id=broker,
        rack=(live.rack if live is not None else None) or NO_RACK,
        address=None if live is None else f"{live.host}:{live.port}",
        is_controller=broker == snapshot.controller,
        replicas=counts.replicas[broker],
        leaders=counts.leaders[broker],
        preferred=counts.preferred[broker],
        out_of_sync=counts.out_of_sync[broker],
        size_bytes=sum(counts.dir_bytes[broker, each.path] for each in dirs) if told else None,
        answers=told or bool(snapshot.denied),
        bytes_in=float(rates[BYTES_IN][broker]) if BYTES_IN in rates else None,
        bytes_out=float(rates[BYTES_OUT][broker]) if BYTES_OUT in rates else None,
        log_dirs=tuple(
            LogDirSum(
                path=each.path,
                replicas=counts.dir_replicas[broker, each.path],
                size_bytes=counts.dir_bytes[broker, each.path],
                total_bytes=each.total_bytes,
                usable_bytes=each.usable_bytes,
                failed=each.failed,
                cordoned=each.cordoned,
            )
            for each in dirs
        ),
        throttles={} if live is None else {key: live.configs[key] for key in RATES if key in live.configs},
    )
