"""Our embedded cluster beside Apache Kafka: `python -m benchmarks.cluster [--json] [--quick]`.

Three brokers each, one cluster at a time, the same client with the same settings. Every cluster is warmed up
with an eighth of the data before it is measured. The whole takes about eight minutes, `--quick` about three.

    start to first ack   from nothing until a record is acknowledged by all of 3 replicas
    memory, idle         of the brokers' processes a second later, shared pages counted once
    create P × R         P partitions of R replicas, until every broker by itself tells of all leaders
    produce, consume     records of 1 KiB, 6 partitions, acks=all
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
from benchmarks.contenders import KRAFT, OURS, OURS_APART, ZOOKEEPER, Contender, bytecode
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
FLOWS = {
    replication_factor: (f"produce, {replication_factor} replicas", f"consume, {replication_factor} replicas")
    for replication_factor in FACTORS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The sizes of the measurements."""

    size_bytes: int
    idle_partitions: tuple[int, ...]
    """Each is measured, one after the other in the same cluster; the last one also at the peer."""
    settle_s: float
    idle_s: float

    @property
    def records(self) -> int:
        return self.size_bytes // work.RECORD_BYTES


WHOLE = Scale(size_bytes=GIB, idle_partitions=(1_000, 5_000, 10_000), settle_s=8.0, idle_s=8.0)
QUICK = Scale(size_bytes=GIB // 8, idle_partitions=(1_000, 2_000), settle_s=4.0, idle_s=4.0)


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
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else WHOLE
    with bytecode():
        rows = compared(scale) + idle_rows(scale)
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
            replace(promise, targets={}, limit=None),
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
    faster = Promise(unit="MB/s", targets=dict.fromkeys(both, 1.0), more_is_better=True)
    return {
        START: Promise(unit="s", targets=dict.fromkeys(both, 1 / 10), limit=1.2),
        MEMORY: Promise(unit="MB", targets=dict.fromkeys(both, 1 / 6), limit=150),
        CREATE: Promise(unit="s", targets={KRAFT.name: 1.0, ZOOKEEPER.name: 1 / 5}),
        **{name: faster for names in FLOWS.values() for name in names},
    }


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
        return figures


def flow(up: Up, topic: str, replication_factor: int, records: int) -> tuple[float, float]:
    """Return MB/s into a new topic and out of it. Reading is repeated, and the best run counts.

    What others have written must be on disk before: how long the system lets one write without waiting
    for the disk depends on how much is unwritten.
    """
    work.create(up.bootstrap, topic, work.PARTITIONS, replication_factor)
    os.sync()
    in_s = work.produce(up.bootstrap, topic, work.PARTITIONS, records)
    out_s = min(work.consume(up.bootstrap, topic, work.PARTITIONS, records) for _ in range(READS))
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
