"""Summarize a plan for a reader: moves, bytes, brokers before and after, duration."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.model import ANY_DIR
from restow.plan.schedule.traffic import Channel, Traffic, Way
from restow.sizes import count, human_bytes, human_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from restow.model import BrokerId, Limits, Move, Partition, Plan, Snapshot


@frozen
class Load:
    """The contents of a broker: bytes, replicas, and how many of them are the preferred leader."""

    size_bytes: int | None = 0
    """None if no size of its replicas is known: those of a dead broker that nobody else has."""
    replicas: int = 0
    preferred: int = 0


@frozen
class BrokerChange:
    """One broker before and after, with the bytes that it receives and sends."""

    broker: BrokerId
    before: Load
    after: Load
    received_bytes: int
    sent_bytes: int
    """Assumes that the first replica leads; if another leads, its broker sends instead."""
    dir_bytes: int
    """Bytes that it copies between its own log dirs."""

    def cells(self) -> tuple[str, ...]:
        """Return its row in a table with `CHANGE_HEADS`."""
        return (
            str(self.broker),
            f"{self.before.replicas:,} → {self.after.replicas:,}",
            f"{self.before.preferred:,} → {self.after.preferred:,}",
            *map(human_bytes, (self.received_bytes, self.sent_bytes, self.dir_bytes)),
        )


CHANGE_HEADS = ("broker", "replicas", "first of", "receives", "sends", "between its log dirs")


@frozen
class DirChange:
    """Bytes into and out of one log dir. Where brokers choose the log dir, it is not known beforehand."""

    broker: BrokerId
    path: str
    in_bytes: int
    out_bytes: int


@frozen
class PlanView:
    """The sums of a plan. Without a snapshot, before and after count only the plan's partitions."""

    moves: int
    steps: int
    waves: int
    bytes_to_copy: int
    reordered: int
    """Moves that copy nothing: another order, or fewer replicas."""
    unsized: int
    """Moves of partitions whose size no broker has told; they count as 0 B."""
    brokers: tuple[BrokerChange, ...]
    dirs: tuple[DirChange, ...]
    whole_cluster: bool


def view_of(plan: Plan, snapshot: Snapshot | None = None) -> PlanView:
    """Return the sums of a plan."""
    traffic = traffic_of(plan)
    received, sent, within = (traffic.of(way) for way in Way)
    before, after = _loads(plan, snapshot)
    brokers = sorted(before.keys() | after.keys())
    return PlanView(
        moves=len(plan.moves),
        steps=sum(map(len, plan.waves)),
        waves=len(plan.waves),
        bytes_to_copy=plan.bytes_to_copy,
        reordered=sum(not move.adding and not move.dir_changes for move in plan.moves),
        unsized=sum(move.told_bytes is None for move in plan.moves),
        brokers=tuple(
            BrokerChange(
                broker=broker,
                before=before.get(broker, Load()),
                after=after.get(broker, Load()),
                received_bytes=received.get(broker, 0),
                sent_bytes=sent.get(broker, 0),
                dir_bytes=within.get(broker, 0),
            )
            for broker in brokers
        ),
        dirs=_dirs(plan),
        whole_cluster=snapshot is not None,
    )


def seconds_at(view: PlanView, bytes_per_s: float) -> float:
    """Return the least duration at this throttle, which holds for each direction of each broker."""
    traffic = Traffic()
    for each in view.brokers:
        ways = zip(Way, (each.received_bytes, each.sent_bytes, each.dir_bytes), strict=True)
        traffic.by_channel.update({Channel(way, each.broker): size for way, size in ways})
    return traffic.seconds_at(dict.fromkeys(Way, bytes_per_s)) or 0.0


def limits_told(limits: Limits) -> str:
    """Return the limits that hold while a plan is executed, in words."""
    return (
        f"{limits.moves_in:,} in and {limits.moves_out:,} out per broker at a time, "
        f"{count(limits.extra_copies, 'extra copy')}, log dirs {limits.fill:.0%} full"
    )


def times_told(view: PlanView, rates: Iterable[int]) -> str:
    """Return the least durations at these rising throttles, up to the first that is under a second."""
    found = []
    for rate in rates:
        seconds = seconds_at(view, rate)
        found.append(f"{'under 1 s' if seconds < 1 else human_duration(seconds)} at {human_bytes(rate)}/s")
        if seconds < 1:
            break
    return ", ".join(found)


def traffic_of(plan: Plan) -> Traffic:
    """Return the bytes that a plan copies, assuming that the first replica leads."""
    by_way: dict[Way, Counter[BrokerId]] = {way: Counter() for way in Way}
    received, sent, within = (by_way[way] for way in (Way.RECEIVED, Way.SENT, Way.WITHIN))
    for move in plan.moves:
        for broker in move.adding:
            received[broker] += move.size_bytes
            sent[move.before[0]] += move.size_bytes
        if move.log_dirs:
            for broker in move.dir_changes:
                within[broker] += move.own_size(broker)
    channels = ((Channel(way, broker), size) for way, some in by_way.items() for broker, size in some.items())
    return Traffic(Counter(dict(channels)))


def _loads(plan: Plan, snapshot: Snapshot | None) -> tuple[dict[BrokerId, Load], dict[BrokerId, Load]]:
    before = _Sum((move.before, _sizes(move, move.before)) for move in plan.moves)
    after = _Sum((move.after, _sizes(move, move.after)) for move in plan.moves)
    if snapshot is None:
        return before.loads(), after.loads()
    moving = {move.partition for move in plan.moves}
    others = [
        (partition.replicas, own_sizes(partition))
        for name, partition in snapshot.all_partitions()
        if name not in moving
    ]
    for each in (before, after):
        each.add(others)
        each.know(snapshot.broker)
    return before.loads(), after.loads()


def _sizes(move: Move, replicas: tuple[BrokerId, ...]) -> tuple[int | None, ...]:
    """Return the sizes of replicas: existing ones have their own, new ones their leader's."""
    return tuple([move.own_size(broker) for broker in replicas])


def own_sizes(partition: Partition) -> tuple[int | None, ...]:
    """Return the bytes of each replica of a partition; the leader's where its own are unknown, or None."""
    size = partition.size_bytes if partition.copies else None
    own = partition.own_sizes
    return tuple([own.get(broker, size) for broker in partition.replicas])


class _Sum:
    """Sums of partitions by broker."""

    def __init__(self, partitions: Iterable[tuple[tuple[BrokerId, ...], tuple[int | None, ...]]]) -> None:
        self._bytes: Counter[BrokerId] = Counter()
        self._replicas: Counter[BrokerId] = Counter()
        self._unsized: Counter[BrokerId] = Counter()
        self._preferred: Counter[BrokerId] = Counter()
        self.add(partitions)

    def add(self, partitions: Iterable[tuple[tuple[BrokerId, ...], tuple[int | None, ...]]]) -> None:
        for replicas, sizes in partitions:
            for broker, size_bytes in zip(replicas, sizes, strict=True):
                self._bytes[broker] += size_bytes or 0
                self._unsized[broker] += size_bytes is None
                self._replicas[broker] += 1
            if replicas:
                self._preferred[replicas[0]] += 1

    def know(self, brokers: Iterable[BrokerId]) -> None:
        """Add brokers, even if they hold nothing."""
        for broker in brokers:
            self._replicas[broker] += 0

    def loads(self) -> dict[BrokerId, Load]:
        return {
            broker: Load(
                size_bytes=self._bytes[broker] or (None if self._unsized[broker] else 0),
                replicas=self._replicas[broker],
                preferred=self._preferred[broker],
            )
            for broker in self._replicas
        }


def _dirs(plan: Plan) -> tuple[DirChange, ...]:
    into: Counter[tuple[BrokerId, str]] = Counter()
    out: Counter[tuple[BrokerId, str]] = Counter()
    for move in plan.moves:
        for broker, path in _arrivals(move):
            into[broker, path] += move.own_size(broker)
        for broker in (*move.removing, *move.dir_changes):
            if broker in move.dirs_before:
                out[broker, move.dirs_before[broker]] += move.own_size(broker)
    return tuple(
        DirChange(broker=broker, path=path, in_bytes=into[broker, path], out_bytes=out[broker, path])
        for broker, path in sorted(into.keys() | out.keys())
    )


def _arrivals(move: Move) -> Iterator[tuple[BrokerId, str]]:
    yield from move.dir_changes.items()
    wanted = dict(zip(move.after, move.log_dirs, strict=False))
    for broker in move.adding:
        if wanted.get(broker, ANY_DIR) != ANY_DIR:
            yield broker, wanted[broker]
