"""The runs of `benchmarks.rehearse`: plans on one Apache cluster, each rehearsed and then carried out.

Four brokers with two log dirs each hold one topic with partitions of unequal size. Every plan starts from
what the one before has left, so one cluster and its data serve for all.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from confluent_kafka import Producer

import restow
from benchmarks import reassign_work as work
from harness.apache import apache_kafka
from harness.zookeeper import zookeeper
from restow.model import ANY_DIR, Limits
from restow.model.load import BYTES_IN, LoadModel, Resource
from restow.plan.files import text as plan_text
from restow.plan.pin import Target, plan_from_targets
from restow.snapshot import text as snapshot_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.apache import Cluster as ApacheCluster
    from restow.connection import Cluster
    from restow.execute.progress.status import RunStatus
    from restow.model import Plan, Snapshot, TopicPartition
    from restow.rehearse import Rehearsal

BROKERS, LOG_DIRS, PARTITIONS = 4, 2, 48
TOPIC = "data"
MB = 1_000_000
_LEAST_MB, _MOST_MB = 12, 400
_ALMOST_EMPTY = 4
_RECORD = 10_000
_LOOK_S = 0.2
_SAMPLE_S = 6.0
_REST_S = 12.0
"""Kafka measures throttles over eleven seconds: what the run before has not used would pass in a burst."""
_DIES_AFTER_S, _DETECT_S = 8, 9
_SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": f"{_DETECT_S * 1000}",
    "zookeeper.session.timeout.ms": f"{_DETECT_S * 1000}",
}
"""Leaders do not move by themselves; a broker is dead after nine seconds, which is Kafka's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One plan to be made, and how to carry it out."""

    name: str
    rate_mb: float | None = None
    """The throttle in MB/s; None for no throttle."""
    shares: tuple[float, ...] = (1.0, 0.5, 0.15)
    """What each receiving broker gets, as a share of what the first one gets."""
    seconds: float = 75.0
    """How long the first receiver should take at the throttle."""
    amount_mb: float = 0.0
    """How much it gets without a throttle."""
    moves_in: int = 20
    within: float = 0.0
    """The share of moves that go to the other log dir of their broker."""
    pick_dirs: bool = True
    """Whether the plan names the log dirs of arriving replicas, as plans of `restow plan` do. Otherwise the
    brokers choose, the rehearsal says that it cannot know what, and peaks are not compared."""
    produce_mb: float = 0.0
    """What producers write meanwhile, in MB/s for all partitions together."""
    loses: bool = False
    """Whether the plan drains a broker, and that broker dies meanwhile."""
    counts: bool = True
    """Whether it is measured; otherwise it only teaches the constants."""

    @property
    def throttle(self) -> str:
        return "none" if self.rate_mb is None else f"{self.rate_mb:g}MB/s"


@dataclass(slots=True, kw_only=True)
class Result:
    """What was predicted of one run, and what happened."""

    case: Case
    version: str
    plan: Plan
    snapshot: Snapshot
    told: Rehearsal
    predicted_s: float
    actual_s: float = 0.0
    ending: str = ""
    peaks: dict[tuple[int, str], tuple[float, float]] = field(default_factory=dict)
    """The peak of each log dir, as predicted and as it was, in bytes of log files."""
    etas: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and the time left that was told then."""
    used: list[tuple[float, list[int]]] = field(default_factory=list)
    """Seconds since the start, and the bytes in each log dir then."""

    @property
    def time_error(self) -> float:
        return abs(self.predicted_s / self.actual_s - 1) if self.ending == "done" else inf

    @property
    def peak_errors(self) -> list[float]:
        return [abs(told / was - 1) for told, was in self.peaks.values()]

    def document(self) -> dict[str, object]:
        """Return everything as JSON."""
        return {
            "version": self.version,
            "case": asdict(self.case),
            "predicted_s": self.predicted_s,
            "actual_s": self.actual_s,
            "peaks": [[*place, *both] for place, both in self.peaks.items()],
            "etas": self.etas,
            "used": self.used,
            "told": self.told.document(),
            "plan": plan_text.dumps(self.plan),
            "snapshot": snapshot_text.dumps(self.snapshot),
        }

    @property
    def eta_errors(self) -> list[tuple[float, float]]:
        """Return the time left as told and as it was, of every report after a tenth of the run.

        Where a broker dies, those count that come when the others know it: none could know before.
        """
        since_s = max(self.actual_s / 10, _DIES_AFTER_S + _DETECT_S if self.case.loses else 0.0)
        late = [(told, self.actual_s - at_s) for at_s, told in self.etas if at_s >= since_s]
        return [(told, left) for told, left in late if left > 0]


class DiskWatch(threading.Thread):
    """Notes the bytes of log files in each log dir, without files that were being deleted before."""

    def __init__(self, dirs: Mapping[tuple[int, str], Path]) -> None:
        super().__init__(name="disk-watch", daemon=True)
        self._dirs, self._over = dirs, threading.Event()
        self._ignored = {
            each.path for path in dirs.values() for each in os.scandir(path) if "-delete" in each.name
        }
        self.before = self._used()
        self.history = [(time.monotonic(), self.before)]

    def run(self) -> None:
        while not self._over.wait(_LOOK_S):
            self._look()

    def stop(self) -> None:
        self._over.set()
        self.join()
        self._look()

    def _look(self) -> None:
        self.history.append((time.monotonic(), self._used()))

    def peak(self, place: tuple[int, str]) -> int:
        return max(used[place] for _, used in self.history)

    def _used(self) -> dict[tuple[int, str], int]:
        return {place: sum(self._sizes(path)) for place, path in self._dirs.items()}

    def _sizes(self, path: Path) -> Iterator[int]:
        for folder in os.scandir(path):
            if not folder.is_dir() or folder.path in self._ignored:
                continue
            try:
                yield sum(each.stat().st_size for each in os.scandir(folder.path) if ".log" in each.name)
            except FileNotFoundError:
                continue  # it was renamed or deleted meanwhile: the next look counts it


@contextmanager
def cluster_of(folder: Path, version: str) -> Iterator[Bench]:
    """Start a cluster with its data; 3.9.1 runs on a ZooKeeper."""
    with ExitStack() as stack:
        address = None
        if version.startswith("3"):
            address = stack.enter_context(zookeeper(folder / "zookeeper")).address
        apache = stack.enter_context(
            apache_kafka(
                folder / "kafka",
                nodes=BROKERS,
                version=version,
                settings=_SETTINGS,
                zookeeper=address,
                log_dirs=LOG_DIRS,
            )
        )
        cluster = stack.enter_context(restow.connect(apache.bootstrap, journal=folder / "journal"))
        bench = Bench(apache, cluster, folder, version)
        bench.fill()
        yield bench


class Bench:
    """One cluster on which plans are rehearsed and carried out."""

    def __init__(self, apache: ApacheCluster, cluster: Cluster, folder: Path, version: str) -> None:
        self._apache, self._cluster, self._version = apache, cluster, version
        self._journal = folder / "journal"
        self._dirs = {
            (broker, str(path)): path
            for broker in apache.brokers
            for path in (folder / "kafka" / f"node-{broker}" / f"data-{i}" for i in range(LOG_DIRS))
        }
        self._chance = Random(f"rehearse {version}")
        self._ended_s = 0.0

    def fill(self) -> None:
        """Create the topic and write partitions of unequal size."""
        ids = sorted(self._apache.brokers)
        assignment = {
            number: [ids[number % BROKERS], ids[(number + 1 + number // BROKERS % 3) % BROKERS]]
            for number in range(PARTITIONS)
        }
        with work.admin_of(self._apache.bootstrap) as admin:
            work.create(admin, TOPIC, assignment)
        producer = Producer({"bootstrap.servers": self._apache.bootstrap, "acks": "all", "log_level": 0})
        value = os.urandom(_RECORD)
        for number in range(PARTITIONS):
            size = (
                100_000
                if number < _ALMOST_EMPTY
                else int(MB * _LEAST_MB * (_MOST_MB / _LEAST_MB) ** self._chance.random())
            )
            for _ in range(size // _RECORD):
                _send(producer, value, number)
        producer.flush(300)

    def run(self, case: Case) -> Result:
        """Rehearse a plan, carry it out, and compare."""
        with self._producing(case):
            time.sleep(max(0.0, self._ended_s + _REST_S - time.monotonic()))
            load = self._sampled_load() if case.produce_mb else None
            snapshot = self._cluster.snapshot()
            lost = self._chance.choice(sorted(self._apache.brokers)) if case.loses else None
            plan = self._plan(snapshot, case, lost)
            told = restow.rehearse(
                plan,
                snapshot,
                load,
                throttle=case.throttle,
                journal=self._journal,
                what_if=() if lost is None else (f"broker {lost} dies at {_DIES_AFTER_S}s",),
                max_under_replicated=-1 if lost else 0,
            )
            predicted_s = told.what_if[0].seconds if lost else told.seconds.p50
            result = Result(
                case=case,
                version=self._version,
                plan=plan,
                snapshot=snapshot,
                told=told,
                predicted_s=predicted_s,
            )
            self._execute(result, lost)
        return result

    def _execute(self, result: Result, lost: int | None) -> None:
        watch = DiskWatch(self._dirs)
        watch.start()
        killer = threading.Timer(_DIES_AFTER_S, self._apache.brokers[lost or 1].kill)
        if lost is not None:
            killer.start()
        began_s = time.monotonic()

        def status(now: RunStatus) -> None:
            report = now.report
            if report.eta_s is not None and now.ended is None:
                told_s = report.eta_s
                result.etas.append((time.monotonic() - began_s, told_s))

        outcome = self._cluster.execute(
            result.plan,
            throttle=result.case.throttle,
            on_status=status,
            max_under_replicated=-1 if lost else 0,
        )
        result.actual_s, result.ending = time.monotonic() - began_s, outcome.ending.value
        watch.stop()
        if lost is not None:
            killer.join()
            self._apache.brokers[lost].launch()
            self._apache.brokers[lost].until_ready(BROKERS)
            self._cluster.resume()  # it restores the throttles of the broker that was down
        self._ended_s = time.monotonic()
        result.used = [(at_s - began_s, list(used.values())) for at_s, used in watch.history]
        if lost is None and result.case.pick_dirs:
            for each in result.told.log_dirs:
                place = each.broker, each.path
                predicted = watch.before[place] + each.peak_bytes - each.before_bytes
                result.peaks[place] = predicted, watch.peak(place)

    def _plan(self, snapshot: Snapshot, case: Case, drained: int | None) -> Plan:
        """Move partitions at random until each receiver gets its share; perhaps only from one broker."""
        amount = MB * (case.amount_mb if case.rate_mb is None else case.rate_mb * case.seconds)
        others = [broker for broker in sorted(self._apache.brokers) if broker != drained]
        receivers = self._chance.sample(others, len(case.shares))
        names = [name for name, _ in snapshot.all_partitions() if name.topic == TOPIC]
        self._chance.shuffle(names)
        targets: list[Target] = []
        for receiver, share in zip(receivers, case.shares, strict=True):
            left = amount * share
            for name in list(names):
                found = snapshot.partition(name)
                assert found is not None
                if found.size_bytes > left or drained not in (None, *found.replicas):
                    continue
                inside = self._chance.random() < case.within
                if inside != (receiver in found.replicas):
                    continue
                if inside:
                    targets.append(self._within(snapshot, name, receiver))
                else:
                    targets.append(self._between(snapshot, name, receiver, case, drained))
                names.remove(name)
                left -= found.size_bytes
        limits = Limits(moves_in=case.moves_in, fill=1.0)
        return plan_from_targets(snapshot, targets, created_ms=1, limits=limits, title=case.name)

    def _within(self, snapshot: Snapshot, name: TopicPartition, broker: int) -> Target:
        found = snapshot.partition(name)
        assert found is not None
        here = found.log_dirs[broker]
        other = next(path for at, path in self._dirs if at == broker and path != here)
        dirs = tuple(other if each == broker else ANY_DIR for each in found.replicas)
        return Target(partition=name, replicas=found.replicas, log_dirs=dirs)

    def _between(
        self,
        snapshot: Snapshot,
        name: TopicPartition,
        receiver: int,
        case: Case,
        drained: int | None,
    ) -> Target:
        found = snapshot.partition(name)
        assert found is not None
        replicas = list(found.replicas)
        old = self._chance.choice(replicas) if drained is None else drained
        replicas[replicas.index(old)] = receiver
        dirs: tuple[str, ...] = ()
        if case.pick_dirs:
            wanted = self._chance.choice([path for at, path in self._dirs if at == receiver])
            dirs = tuple(wanted if each == receiver else ANY_DIR for each in replicas)
        return Target(partition=name, replicas=tuple(replicas), log_dirs=dirs)

    @contextmanager
    def _producing(self, case: Case) -> Iterator[None]:
        """Write at a steady rate for as long as the block lasts."""
        if not case.produce_mb:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._produce, args=(case.produce_mb * MB, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _produce(self, rate: float, over: threading.Event) -> None:
        settings = {"bootstrap.servers": self._apache.bootstrap, "linger.ms": 50, "log_level": 0}
        producer, value, sent = Producer(settings), os.urandom(_RECORD), 0
        began_s = time.monotonic()
        while not over.wait(0.02):
            while sent * _RECORD < rate * (time.monotonic() - began_s):
                _send(producer, value, sent % PARTITIONS)
                sent += 1
        producer.flush(60)

    def _sampled_load(self) -> LoadModel:
        """Measure what is written, as the pipeline does: how much partitions grow."""
        before = self._cluster.snapshot()
        time.sleep(_SAMPLE_S)
        after = self._cluster.snapshot()
        seconds = (after.taken_ms - before.taken_ms) / 1000
        names = tuple(name for name, _ in after.all_partitions())
        sizes = [[_size(each, name) for name in names] for each in (before, after)]
        rates = (np.array(sizes[1]) - np.array(sizes[0])) / seconds
        resources = {BYTES_IN: Resource(leading=rates, following=rates)}
        return LoadModel(
            cluster_id=after.cluster_id, made_ms=after.taken_ms, partitions=names, resources=resources
        )


def _size(snapshot: Snapshot, name: TopicPartition) -> int:
    found = snapshot.partition(name)
    return 0 if found is None else found.size_bytes


def _send(producer: Producer, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(TOPIC, value, partition=partition)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(0.05)
