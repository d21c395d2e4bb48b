"""How fast plans are rehearsed at flow level: a large one in a process of its own, and many on Spark.

Clusters are made up: three replicas for each partition, sizes exponential; each move takes one replica to
another broker. Making them is not measured, nor is starting Spark.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.plan_clusters import loads_of, skewed, snapshot_of
from benchmarks.report import Row
from harness.spark import spark_session
from restow.plan.flow.constants import Calibration
from restow.plan.flow.loads import client_loads
from restow.plan.pin import Target, plan_from_targets
from restow.rehearse.rehearsing import rehearse
from restow.rehearse.variants import PlanToRehearse, variants_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.plan_clusters import Cluster
    from restow.model import Plan, Snapshot

_START_MS = 1_767_571_200_000
_THROTTLES = ("20MB/s", "50MB/s", "100MB/s", "none")
_STARTS, _SEEDS = 25, 10


def case_of(cluster: Cluster, moves: int) -> tuple[Snapshot, Plan]:
    """Return a snapshot and a plan of so many moves."""
    brokers = len(cluster.rack)
    snapshot, chance = snapshot_of(cluster), np.random.default_rng(1)
    targets = []
    for number in chance.choice(len(snapshot.names), moves, replace=False).tolist():
        replicas = list(snapshot.partitions[number].replicas)
        others = [each for each in chance.integers(brokers, size=4).tolist() if each not in replicas]
        replicas[int(chance.integers(3))] = others[0]
        targets.append(Target(partition=snapshot.names[number], replicas=tuple(replicas)))
    return snapshot, plan_from_targets(snapshot, targets, created_ms=1)


def large_rows(brokers: int, moves: int) -> Iterator[Row]:
    """Rehearse a large plan in a fresh process; its memory includes the snapshot and the plan."""
    command = [sys.executable, "-m", "benchmarks.rehearse_model", str(brokers), str(moves)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(child.stdout)
    name = f"flow level: {brokers:,} brokers, {moves:,} moves"
    yield Row(name=name, ours=measured["seconds"], unit="s", limit=10.0)
    yield Row(name=f"{name}: of the processor", ours=measured["cpu"], unit="s")
    yield Row(name=f"{name}: peak memory", ours=measured["peak_mib"], unit="MiB", limit=1024.0)


def measure(brokers: int, moves: int) -> dict[str, float]:
    """Rehearse once in this process."""
    snapshot, plan = case_of(skewed(brokers, 6 * moves), moves)
    began, cpu = time.perf_counter(), time.process_time()
    told = rehearse(plan, snapshot, throttle="50MB/s", calibration=Calibration())
    taken, used = time.perf_counter() - began, time.process_time() - cpu
    if not told.holds:
        raise SystemExit(f"the plan has problems: {told.problems}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": taken, "cpu": used, "peak_mib": peak}


def many_rows(brokers: int, moves: int) -> Iterator[Row]:
    """Rehearse a thousand variants with loads, on Spark with two cores."""
    from restow.pipeline.jobs.rehearse import by_variant, rehearsals

    cluster = skewed(brokers, 6 * moves)
    snapshot, plan = case_of(cluster, moves)
    loads = client_loads(loads_of(cluster), snapshot, plan)
    ready = PlanToRehearse(plan=plan, snapshot=snapshot, loads=loads, known=Calibration(), flags={})
    starts = [_START_MS + number * 3_600_000 for number in range(_STARTS)]
    variants = variants_of(_THROTTLES, starts, (), _SEEDS)
    with tempfile.TemporaryDirectory(prefix="restow-bench-") as name, spark_session(Path(name)) as spark:
        rehearsals(spark, [ready], variants[:2]).collect()  # workers start and import
        began = time.perf_counter()
        by_variant(rehearsals(spark, [ready], variants)).write.parquet(f"{name}/variants")
        taken = time.perf_counter() - began
        found = spark.read.parquet(f"{name}/variants")
        counted = found.agg({"rehearsals": "sum"}).collect()[0][0]
        if counted != len(variants) or found.where("p50 = double('inf')").count():
            raise SystemExit(f"{counted} of {len(variants)} rehearsals were made, or some never end")
    yield Row(
        name=f"{len(variants):,} rehearsals of {brokers} brokers, {moves:,} moves on Spark local[2]",
        ours=taken,
        unit="s",
        limit=60.0,
    )


def rows() -> Iterator[Row]:
    """Yield all rows."""
    yield from large_rows(1_000, 100_000)
    yield from many_rows(40, 2_000)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
