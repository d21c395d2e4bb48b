"""The pipeline's jobs that run our own code in Spark's workers: plans for a fleet, and the assignor lab.

Samples are made up, in Parquet files of the lake's own schemas; making them is not measured, nor is starting
Spark. A fleet is planned twice, on one core and on two.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f

from benchmarks.plan_clusters import skewed
from benchmarks.report import Row, command_line, print_rows
from restow.pipeline.jobs.fleet import fleet
from restow.pipeline.jobs.lab import OF_CLIENTS, OURS, lab
from restow.pipeline.jobs.model import TABLE as MODEL
from restow.pipeline.schemas import ASSIGNMENT, DISKS, REPLICAS, arrow_schema
from restow.pipeline.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.plan_clusters import Cluster
    from restow.pipeline.schemas import Table

_AT_US = 1_767_225_600_000_000
_PER_TOPIC = 50
_DISK = 4_000_000_000_000


def write_fleet(folder: Path, clusters: int, replicas: int, brokers: int = 30) -> None:
    """Write samples of so many clusters, one file for each cluster and table."""
    for number in range(clusters):
        made = skewed(brokers, replicas, seed=number)
        for table, columns in _samples(f"cluster-{number:04}", made):
            where = folder / table.name
            where.mkdir(parents=True, exist_ok=True)
            schema = arrow_schema(table.columns)
            rows = pa.table({name: pa.array(columns[name], schema.field(name).type) for name in schema.names})
            pq.write_table(rows, where / f"{number:04}.parquet")


def _samples(name: str, cluster: Cluster) -> Iterator[tuple[Table, Mapping[str, Any]]]:
    many, brokers = len(cluster.size), len(cluster.rack)
    topic = np.array([f"t{number:04}" for number in range(many // _PER_TOPIC + 1)])
    part_of = np.repeat(np.arange(many), np.diff(cluster.offsets))
    homes = np.split(cluster.home, cluster.offsets[1:-1])
    partition = np.arange(many) % _PER_TOPIC
    about: dict[str, Any] = {"topic": topic[np.arange(many) // _PER_TOPIC], "partition": partition}
    here: dict[str, Any] = {"cluster": [name] * many, "at": [_AT_US] * many, **about}
    yield (
        ASSIGNMENT,
        {
            **here,
            "topic_id": [None] * many,
            "leader": cluster.home[cluster.offsets[:-1]],
            "replicas": homes,
            "isr": homes,
        },
    )
    lying = len(part_of)
    yield (
        REPLICAS,
        {
            "cluster": [name] * lying,
            "at": [_AT_US] * lying,
            "broker": cluster.home,
            "log_dir": ["/data"] * lying,
            "topic": about["topic"][part_of],
            "topic_id": [None] * lying,
            "partition": partition[part_of],
            "size": cluster.size[part_of].astype(np.int64),
            "offset_lag": np.zeros(lying, dtype=np.int64),
            "is_future": np.zeros(lying, dtype=bool),
        },
    )
    held = np.bincount(cluster.home, cluster.size[part_of], minlength=brokers).astype(np.int64)
    yield (
        DISKS,
        {
            "cluster": [name] * brokers,
            "at": [_AT_US] * brokers,
            "broker": np.arange(brokers),
            "rack": cluster.rack.astype(str),
            "log_dir": ["/data"] * brokers,
            "total": [_DISK] * brokers,
            "usable": _DISK - held,
            "error": [None] * brokers,
        },
    )
    loads = {f"bytes_in_{each}": cluster.coming for each in ("mean", "p95", "peak")}
    loads |= {f"bytes_out_{each}": cluster.going for each in ("mean", "p95", "peak")}
    rest: dict[str, Any] = {column: [None] * many for column in MODEL.schema.fieldNames()}
    ones = np.ones(many, dtype=np.int64)
    yield MODEL, rest | here | loads | {"samples": ones, "hours": ones, "confidence": ones.astype(float)}


def plans(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the fleet's table from those files."""

    def read(name: str) -> DataFrame:
        return spark.read.parquet(str(folder / name))

    return fleet(read("assignment"), read("replicas"), read("disks"), read("model"))


def write_groups(spark: SparkSession, folder: Path, groups: int, members: int, partitions: int) -> None:
    """Write samples of so many groups, each with its own topic, and random racks on both sides."""
    one = f.timestamp_micros(f.lit(_AT_US))
    rows = spark.range(groups * partitions).select(
        f.lit("c").alias("cluster"),
        one.alias("at"),
        f.concat(f.lit("group-"), f.floor(f.col("id") / partitions)).alias("group"),
        f.lit("Stable").alias("state"),
        f.lit("range").alias("assignor"),
        f.concat(f.lit("member-"), f.pmod(f.hash("id"), f.lit(members))).alias("member"),
        f.lit("client").alias("client"),
        f.concat(f.lit("rack-"), f.pmod(f.hash("id"), f.lit(members)) % 3).alias("rack"),
        f.array(f.concat(f.lit("topic-"), f.floor(f.col("id") / partitions))).alias("subscription"),
        f.concat(f.lit("topic-"), f.floor(f.col("id") / partitions)).alias("topic"),
        (f.col("id") % partitions).cast("int").alias("partition"),
        f.pmod(f.hash(f.lit(7), "id"), f.lit(1000)).cast("bigint").alias("committed"),
        f.array(*((f.col("id") + near).cast("int") % 6 for near in (0, 1))).alias("replicas"),
    )
    named = rows.select("cluster", "at", "topic", "partition", "replicas")
    rows.drop("replicas").write.parquet(str(folder / "groups"))
    named.write.parquet(str(folder / "assignment"))
    named.drop("replicas").withColumn("latest", f.lit(2000).cast("bigint")).write.parquet(
        str(folder / "offsets")
    )
    spark.range(6).select(
        f.lit("c").alias("cluster"),
        one.alias("at"),
        f.col("id").cast("int").alias("broker"),
        f.concat(f.lit("rack-"), f.col("id") % 3).alias("rack"),
    ).write.parquet(str(folder / "disks"))


def answers(spark: SparkSession, folder: Path, assignors: Sequence[str]) -> DataFrame:
    """Return the lab's table from those files."""

    def read(name: str) -> DataFrame:
        return spark.read.parquet(str(folder / name))

    return lab(read("groups"), read("assignment"), read("disks"), read("offsets"), assignors)


def _timed(rows: DataFrame, into: Path) -> float:
    began = time.perf_counter()
    rows.write.parquet(str(into))
    return time.perf_counter() - began


def _session(folder: Path, cores: int) -> AbstractContextManager[SparkSession]:
    """Start Spark as commands do."""
    return session("benchmark", master=f"local[{cores}]", conf={"spark.local.dir": str(folder)})


@contextmanager
def _on(cores: int) -> Iterator[None]:
    """Restrict new processes to so many cores: Spark's JVM uses all, even if its tasks may not."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_of_them)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def fleet_rows(clusters: int, replicas: int) -> Iterator[Row]:
    """Plan the same fleet on one core and on two."""
    with tempfile.TemporaryDirectory(prefix="restow-bench-") as name:
        folder = Path(name)
        write_fleet(folder, clusters, replicas)
        taken = {}
        for cores in (1, 2):
            with _on(cores), _session(folder, cores) as spark:
                _timed(plans(spark, folder).limit(1), folder / f"warm-{cores}")
                taken[cores] = _timed(plans(spark, folder), folder / f"plans-{cores}")
                made = spark.read.parquet(str(folder / f"plans-{cores}"))
                failed = made.where("error is not null or plan is null").count()
                if made.count() != clusters or failed:
                    raise SystemExit(f"{failed} of {made.count()} clusters have no plan")
        yield Row(
            name=f"fleet of {clusters} clusters × {replicas:,} replicas: two cores over one",
            ours=taken[1] / taken[2],
            unit="×",
            limit=1.5,
            more_is_better=True,
        )
        yield Row(
            name="the same, on two cores",
            ours=taken[2],
            unit="s",
            peer=taken[1],
            peer_name="one core",
            limit=12 * clusters * replicas / 1e6,
        )


def lab_rows(groups: int) -> Iterator[Row]:
    """Run every group through every assignor."""
    with tempfile.TemporaryDirectory(prefix="restow-bench-") as name, _session(Path(name), 2) as spark:
        folder = Path(name)
        write_groups(spark, folder, groups, members=10, partitions=100)
        for number, assignors in enumerate((OF_CLIENTS, OURS)):
            taken = _timed(answers(spark, folder, assignors), folder / f"lab-{number}")
            found = spark.read.parquet(str(folder / f"lab-{number}"))
            if found.where("error is null").count() != groups * len(assignors):
                raise SystemExit("some groups have no answer")
            yield Row(
                name=f"lab: {groups:,} groups of 10 members × 100 partitions × {len(assignors)} assignors",
                ours=taken,
                unit="s",
                limit=30 * groups / 10_000 if assignors is OF_CLIENTS else None,
            )


def main() -> None:
    parser = command_line(__doc__ or "")
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--replicas", type=int, default=5_000, help="of each cluster")
    parser.add_argument("--groups", type=int, default=10_000)
    arguments = parser.parse_args()
    rows = [*fleet_rows(arguments.clusters, arguments.replicas), *lab_rows(arguments.groups)]
    print_rows("fleet and lab", rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
