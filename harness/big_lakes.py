"""Large lakes without faults for benchmarks, made with numpy and Arrow.

One cluster; every partition has three replicas and its own steady rate. The files are as compaction leaves
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

START_US = 1_788_220_800_000_000
"""A Tuesday in September 2026, midnight."""
_DAY_US = 86_400_000_000
_SAMPLES_AT_A_TIME = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BigLake:
    """The size of a lake."""

    brokers: int = 1_000
    topics: int = 1_000
    partitions: int = 100_000
    samples: int = 100
    every_s: int = 900
    seed: int = 1

    @property
    def replica_rows(self) -> int:
        return self.partitions * 3 * self.samples


def write_big_lake(folder: Path, size: BigLake, begin: int = 0) -> None:
    """Write the tables `replicas` and `assignment` of a lake, from this sample on."""
    chance = np.random.default_rng(size.seed)
    number = np.arange(size.partitions)
    topic, partition = number % size.topics, number // size.topics
    shift = 1 + chance.integers(size.brokers // 3, size=size.partitions)
    holders = np.stack([number % size.brokers, number + shift, number + 2 * shift], axis=1) % size.brokers
    speed = chance.pareto(1.5, size.partitions) * 10_000 + 100
    born = chance.integers(1 << 30, size=size.partitions)
    times = START_US + np.arange(size.samples) * size.every_s * 1_000_000
    for first in range(begin, size.samples, _SAMPLES_AT_A_TIME):
        chunk = times[first : first + _SAMPLES_AT_A_TIME]
        for day in np.unique(chunk // _DAY_US):
            at = chunk[chunk // _DAY_US == day]
            where = f"v1/cluster=big/day={np.datetime64(int(day), 'D')}"
            name = f"part-{first:05d}.parquet"
            _write(
                folder / "replicas" / where / name,
                _replicas(at, topic, partition, holders, speed, born, size),
            )
            _write(folder / "assignment" / where / name, _assignment(at, topic, partition, holders, size))


def _replicas(
    at: Ints,
    topic: Ints,
    partition: Ints,
    holders: Ints,
    speed: NDArray[np.float64],
    born: Ints,
    size: BigLake,
) -> pa.Table:
    """Return rows by broker, topic and partition, each with all of its times."""
    partitions = len(topic)
    row = np.repeat(np.arange(partitions), 3)
    broker = holders.ravel()
    order = np.lexsort((partition[row], topic[row], broker))
    row, broker = np.repeat(row[order], len(at)), np.repeat(broker[order], len(at))
    when = np.tile(at, partitions * 3) + broker * 1_000
    grown = born[row] + (speed[row] * ((when - START_US) / 1e6)).astype(np.int64)
    count = len(row)
    return pa.table(
        {
            "at": pa.array(when, pa.timestamp("us", tz="UTC")),
            "broker": pa.array(broker, pa.int32()),
            "log_dir": _names("/data/{}", 2, row % 2),
            "topic": _names("topic-{:05d}", size.topics, topic[row]),
            "topic_id": _names("id-of-topic-number-{:05d}", size.topics, topic[row]),
            "partition": pa.array(partition[row], pa.int32()),
            "size": pa.array(grown, pa.int64()),
            "offset_lag": pa.array(np.zeros(count, np.int64)),
            "is_future": pa.array(np.zeros(count, bool)),
        }
    )


def _assignment(at: Ints, topic: Ints, partition: Ints, holders: Ints, size: BigLake) -> pa.Table:
    order = np.lexsort((partition, topic))
    row = np.repeat(order, len(at))
    replicas = pa.ListArray.from_arrays(
        pa.array(np.arange(0, 3 * len(row) + 1, 3), pa.int32()), pa.array(holders[row].ravel(), pa.int32())
    )
    return pa.table(
        {
            "at": pa.array(np.tile(at, len(order)), pa.timestamp("us", tz="UTC")),
            "topic": _names("topic-{:05d}", size.topics, topic[row]),
            "topic_id": _names("id-of-topic-number-{:05d}", size.topics, topic[row]),
            "partition": pa.array(partition[row], pa.int32()),
            "leader": pa.array(holders[row, 0], pa.int32()),
            "replicas": replicas,
            "isr": replicas,
        }
    )


def _names(pattern: str, count: int, numbers: Ints) -> pa.DictionaryArray:
    names = pa.array([pattern.format(number) for number in range(count)])
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="snappy", store_schema=False)
