"""Our embedded cluster beside Apache Kafka: `python -m benchmarks.cluster [--json] [--quick]`.

Three brokers each, one cluster at a time, the same clients with the same settings. Every cluster is warmed up
with an eighth of the data before it is measured. The whole takes about ten minutes, `--quick` about four.

    start to first ack   from nothing until a record is acknowledged by all of 3 replicas
    memory, idle         of the brokers' processes a second later, shared pages counted once
    create P × R         P partitions of R replicas, until every broker by itself tells of all leaders
    produce, consume     records of 1 KiB, 6 partitions, acks=all; two consumers with three partitions each
    transactions         of 100 such records and a commit, one after the other, in all 3 replicas
    …, TLS               between client and brokers, in clusters of their own
    P × R: idle CPU      in percent of one core, when nobody asks for anything
    …, a process each    ours as Kafka 3.9.1 runs: three processes that meet in a ZooKeeper
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import cluster_work as work
from benchmarks.contenders import (
    KRAFT,
    KRAFT_TLS,
    OURS,
    OURS_APART,
    OURS_TLS,
    ZOOKEEPER,
    Contender,
    bytecode,
)
from benchmarks.report import Row, command_line, print_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.contenders import Up

GIB = 1 << 30
FACTORS = (2, 3)
READS = 3
REPLICAS_WHEN_IDLE = 2
TOPIC_PARTITIONS = 1_000
START = "start to first ack"
MEMORY = "memory, idle"
CREATE = "create 500 × 2"
TRANSACTIONS = "transactions, 3 replicas"
APART_FLOW = "consume, 3 replicas"
"""The one figure of ours with a process for each broker that has a promise of its own."""
FLOWS = {
    replication_factor: (f"produce, {replication_factor} replicas", f"consume, {replication_factor} replicas")
    for replication_factor in FACTORS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The sizes of the measurements."""

    size_bytes: int
    transactions: int
    idle_partitions: tuple[int, ...]
    """Each is measured, one after the other in the same cluster; the last one also at the peer."""
    settle_s: float
    idle_s: float

    @property
    def records(self) -> int:
        return self.size_bytes // work.RECORD_BYTES


WHOLE = Scale(
    size_bytes=GIB,
    transactions=2_000,
    idle_partitions=(1_000, 5_000, 10_000),
    settle_s=8.0,
    idle_s=8.0,
)
QUICK = Scale(size_bytes=GIB // 8, transactions=400, idle_partitions=(1_000, 2_000), settle_s=4.0, idle_s=4.0)
PARTS = ("flows", "tls", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The unit of a figure and the promised ratios."""

    unit: str
    targets: Mapping[str, float]
    """The promised ratio, by the name of the peer."""
    limit: float | None = None
    more_is_better: bool = False


def main() -> None:
    """Measure and print."""
    parser = command_line("The embedded cluster beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="an eighth of the data and fewer partitions")
    parser.add_argument("--part", choices=PARTS, help="measure only these rows")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else WHOLE
    measures = dict(zip(PARTS, (compared, tls_rows, idle_rows), strict=True))
    with bytecode():
        parts = (arguments.part,) if arguments.part else PARTS
        rows = [row for part in parts for row in measures[part](scale)]
    print_rows(f"Cluster of 3 brokers, {scale.size_bytes >> 20} MiB", rows, as_json=arguments.json)


def compared(scale: Scale) -> list[Row]:
    """Return every figure of ours beside that of each peer."""
    ours = measure(OURS, scale)
    peers = {peer.name: measure(peer, scale) for peer in (KRAFT, ZOOKEEPER)}
    apart = measure(OURS_APART, scale)
    rows = [
        row(name, promise, ours[name], peer_name, figures[name])
        for name, promise in promises().items()
        for peer_name, figures in peers.items()
    ]
    rows += [
        row(
            f"{name}, a process each",
            apart_promise(name, promise),
            apart[name],
            peer_name,
            figures[name],
        )
        for name, promise in promises().items()
        for peer_name, figures in peers.items()
    ]
    return rows


def promises() -> dict[str, Promise]:
    """Return the promise for each figure that `measure` takes."""
    both = (KRAFT.name, ZOOKEEPER.name)
    least = Promise(unit="MB/s", targets={KRAFT.name: 1.0}, more_is_better=True)
    faster = Promise(unit="MB/s", targets=dict.fromkeys(both, 1.0), more_is_better=True)
    return {
        START: Promise(unit="s", targets=dict.fromkeys(both, 1 / 10), limit=0.6),
        MEMORY: Promise(unit="MB", targets=dict.fromkeys(both, 1 / 6), limit=60),
        CREATE: Promise(unit="s", targets={KRAFT.name: 1.0, ZOOKEEPER.name: 1 / 5}),
        **{name: faster for names in FLOWS.values() for name in names},
        TRANSACTIONS: least,
    }


def apart_promise(name: str, promise: Promise) -> Promise:
    """Return the promise for a figure of ours with a process for each broker."""
    targets = dict.fromkeys(promise.targets, 1.2) if name == APART_FLOW else {}
    return replace(promise, targets=targets, limit=None)


def row(name: str, promise: Promise, ours: float, peer_name: str, peer: float) -> Row:
    """Return one figure beside the peer's."""
    return Row(
        name=name,
        ours=ours,
        peer=peer,
        peer_name=peer_name,
        unit=promise.unit,
        target=promise.targets.get(peer_name),
        limit=promise.limit,
        more_is_better=promise.more_is_better,
    )


def measure(contender: Contender, scale: Scale) -> dict[str, float]:
    """Measure all figures of a new cluster."""
    say(f"{contender.name}: start, memory, topics, {scale.size_bytes >> 20} MiB in and out …")
    with fresh(contender) as up:
        work.first_record(up.bootstrap)
        figures = {START: time.monotonic() - up.started_s}
        time.sleep(1.0)
        figures[MEMORY] = work.memory_mb(up.brokers)
        figures[CREATE] = work.create_and_see(up.bootstrap, "many", 500, 2)
        work.delete(up.bootstrap, "many")
        flow(up, "warm", max(FACTORS), scale.records // 8)
        for replication_factor in FACTORS:
            speeds = flow(up, f"flow-{replication_factor}", replication_factor, scale.records)
            figures.update(zip(FLOWS[replication_factor], speeds, strict=True))
        figures[TRANSACTIONS] = transactions(up, scale.transactions)
        return figures


def transactions(up: Up, count: int) -> float:
    """Return MB/s into a new topic by transactions, after an eighth as many to warm up."""
    topic = "transactions"
    work.create(up.bootstrap, f"{topic}-warm", work.PARTITIONS, max(FACTORS))
    work.transact(up.bootstrap, f"{topic}-warm", work.PARTITIONS, count // 8)
    work.create(up.bootstrap, topic, work.PARTITIONS, max(FACTORS))
    os.sync()
    took_s = work.transact(up.bootstrap, topic, work.PARTITIONS, count)
    return count * work.RECORDS_A_TRANSACTION * work.RECORD_BYTES / work.MB / took_s


def tls_rows(scale: Scale) -> list[Row]:
    """Measure a client that connects by TLS."""
    replication_factor = max(FACTORS)
    figures = []
    for contender in (OURS_TLS, KRAFT_TLS):
        say(f"{contender.name}: {scale.size_bytes >> 20} MiB in and out …")
        with fresh(contender) as up:
            work.first_record(up.bootstrap)
            flow(up, "warm", replication_factor, scale.records // 8)
            figures.append(flow(up, "flow", replication_factor, scale.records))
    promise = Promise(unit="MB/s", targets={KRAFT.name: 0.7}, more_is_better=True)
    return [
        row(f"{name}, TLS", promise, ours, KRAFT.name, peer)
        for name, ours, peer in zip(FLOWS[replication_factor], *figures, strict=True)
    ]


def flow(up: Up, topic: str, replication_factor: int, records: int) -> tuple[float, float]:
    """Return MB/s into a new topic and out of it. Reading is repeated, and the best run counts.

    What others have written must be on disk before: how long the system lets one write without waiting
    for the disk depends on how much is unwritten.
    """
    work.create(up.bootstrap, topic, work.PARTITIONS, replication_factor)
    os.sync()
    secured = up.secured
    in_s = work.produce(up.bootstrap, topic, work.PARTITIONS, records, secured=secured)
    out_s = min(
        work.consume(up.bootstrap, topic, work.PARTITIONS, records, secured=secured) for _ in range(READS)
    )
    work.delete(up.bootstrap, topic)
    size_mb = records * work.RECORD_BYTES / work.MB
    return size_mb / in_s, size_mb / out_s


def idle_rows(scale: Scale) -> list[Row]:
    """Measure the cost of idle partitions. The peer runs only the largest number."""
    last = scale.idle_partitions[-1]
    ours = idle(OURS, scale, scale.idle_partitions)
    peer = idle(KRAFT, scale, (last,))
    rows = []
    for partitions, (cpu, create_s) in ours.items():
        peer_cpu, peer_create_s = peer.get(partitions, (math.nan, math.nan))
        name = f"{partitions:,} × {REPLICAS_WHEN_IDLE}"
        peer_name = KRAFT.name if partitions == last else "–"
        rows += [
            Row(
                name=f"{name}: idle CPU",
                ours=cpu,
                peer=peer_cpu,
                peer_name=peer_name,
                unit="%",
                limit=10.0,
            ),
            Row(
                name=f"{name}: create",
                ours=create_s,
                peer=peer_create_s,
                peer_name=peer_name,
                unit="s",
            ),
        ]
    return rows


def idle(contender: Contender, scale: Scale, steps: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """Return the idle CPU and the time to create all partitions, by number of partitions."""
    figures = {}
    made, made_s = 0, 0.0
    with fresh(contender) as up:
        for partitions in steps:
            say(f"{contender.name}: {partitions:,} idle partitions …")
            while made < partitions:
                made_s += work.create_and_see(
                    up.bootstrap, f"idle-{made}", TOPIC_PARTITIONS, REPLICAS_WHEN_IDLE
                )
                made += TOPIC_PARTITIONS
            time.sleep(scale.settle_s)
            figures[partitions] = (work.cpu_percent(up.brokers, scale.idle_s), made_s)
    return figures


@contextmanager
def fresh(contender: Contender) -> Iterator[Up]:
    """Start an empty cluster in a folder that is deleted with it."""
    with (
        tempfile.TemporaryDirectory(prefix="restow-bench-") as folder,
        contender.start(Path(folder)) as up,
    ):
        yield up


def say(what: str) -> None:
    """Print progress on stderr."""
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
