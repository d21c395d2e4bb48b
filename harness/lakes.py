"""Small lakes with all kinds of faults, the same for the same seed.

Every partition has a true history of production, consumption, deletion and leaders. Collectors sample it
badly: samples come twice, late, out of order and with wrong times; brokers do not answer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2024, 9, 3, tzinfo=UTC)
"""A Tuesday, midnight, in the past by any clock, because the pipeline leaves a lake's last days alone."""
BROKERS, RACKS, DIRS = 6, ("a", "b", "c"), ("/data/1", "/data/2")
_INTS, _TIME = pa.list_(pa.int32()), pa.timestamp("us", tz="UTC")
SCHEMAS = {
    "replicas": pa.schema(
        {"at": _TIME, "broker": pa.int32(), "log_dir": pa.string(), "topic": pa.string()}
        | {"topic_id": pa.string(), "partition": pa.int32(), "size": pa.int64()}
        | {"offset_lag": pa.int64(), "is_future": pa.bool_()}
    ),
    "offsets": pa.schema(
        {"at": _TIME, "broker": pa.int32(), "topic": pa.string(), "partition": pa.int32()}
        | {"leader_epoch": pa.int32(), "earliest": pa.int64(), "latest": pa.int64()}
    ),
    "assignment": pa.schema(
        {"at": _TIME, "topic": pa.string(), "topic_id": pa.string(), "partition": pa.int32()}
        | {"leader": pa.int32(), "replicas": _INTS, "isr": _INTS}
    ),
    "groups": pa.schema(
        {"at": _TIME, "group": pa.string(), "state": pa.string(), "assignor": pa.string()}
        | {"member": pa.string(), "client": pa.string(), "rack": pa.string()}
        | {"subscription": pa.list_(pa.string()), "topic": pa.string(), "partition": pa.int32()}
        | {"committed": pa.int64()}
    ),
    "disks": pa.schema(
        {"at": _TIME, "broker": pa.int32(), "rack": pa.string(), "log_dir": pa.string()}
        | {"total": pa.int64(), "usable": pa.int64(), "error": pa.string()}
    ),
}
Rows = dict[str, list[dict[str, Any]]]


@dataclass(slots=True)
class _Partition:
    """The true state of a partition."""

    topic: str
    number: int
    replicas: list[int]
    leader: int
    speed: float
    message: int
    life: int = 1
    epoch: int = 0
    earliest: int = 0
    latest: int = 0
    committed: dict[str, int] = field(default_factory=dict)
    behind: dict[int, float] = field(default_factory=dict)
    """Brokers that are still copying, and the bytes they have."""

    def size(self, broker: int) -> int:
        return int((self.latest - self.earliest) * self.message * self.behind.get(broker, 1.0))


def write_faulty_lake(
    folder: Path, *, seed: int = 1, clusters: int = 2, topics: int = 5, samples: int = 60, every_s: int = 150
) -> None:
    """Write all sampled tables, in files as several collectors would."""
    for number in range(clusters):
        chance = random.Random(1000 * seed + number)  # noqa: S311
        rows = _sampled(chance, topics, samples, every_s)
        _spoil(chance, rows)
        _save(folder, f"cluster-{number}", chance, rows)


def _sampled(chance: random.Random, topics: int, samples: int, every_s: int) -> Rows:
    rows: Rows = {table: [] for table in SCHEMAS}
    partitions = [_born(chance, topic, number) for topic in range(topics) for number in range(3)]
    now = START
    for tick in range(samples):
        gap = 4 * 3600 if tick == samples // 2 else every_s
        now += timedelta(seconds=gap)
        for each in partitions:
            _live(chance, each, gap)
        silent = chance.randrange(BROKERS) if chance.random() < 0.2 else None
        at = now
        if samples // 3 <= tick < samples // 3 + 4:
            at -= timedelta(seconds=2.5 * every_s)  # a clock was set back, and forward again
        _sample(chance, rows, partitions, at, silent)
    return rows


def _born(chance: random.Random, topic: int, number: int) -> _Partition:
    replicas = chance.sample(range(BROKERS), 3)
    speed = chance.choice((0.0, chance.expovariate(1 / 20)))
    name = f"topic-{topic}"
    made = _Partition(name, number, replicas, replicas[0], speed, chance.randrange(50, 2000))
    made.latest = chance.randrange(1_000_000)
    made.committed = {"readers": made.latest // 2, "audit": 0} if topic % 2 else {"readers": made.latest}
    return made


def _live(chance: random.Random, each: _Partition, seconds: float) -> None:
    """Advance a partition by some time, with random events."""
    each.latest += int(each.speed * seconds * chance.uniform(0.5, 1.5))
    for group, place in each.committed.items():
        each.committed[group] = min(each.latest, place + int(each.speed * seconds * chance.uniform(0, 2)))
    each.behind = {broker: share + 0.3 for broker, share in each.behind.items() if share < 0.7}
    event = chance.random()
    if event < 0.06:  # retention
        each.earliest += (each.latest - each.earliest) // chance.randrange(2, 5)
    elif event < 0.08:  # an unclean election cuts the log
        each.latest = max(each.earliest, each.latest - chance.randrange(1, 5000))
        each.epoch += 1
    elif event < 0.09:  # the topic is deleted and created again
        each.life, each.epoch, each.earliest, each.latest = each.life + 1, 0, 0, chance.randrange(2_000_000)
        each.committed = dict.fromkeys(each.committed, 0)
    elif event < 0.12:  # a group starts over
        each.committed["readers"] = each.earliest
    elif event < 0.18:  # another leader
        each.leader, each.epoch = chance.choice(each.replicas), each.epoch + 1
    elif event < 0.20:  # a replica moves
        new = chance.choice([broker for broker in range(BROKERS) if broker not in each.replicas])
        each.replicas = [*each.replicas[1:], new]
        each.behind[new] = 0.1
        each.leader = each.replicas[0]
    elif event < 0.21:  # no leader
        each.leader = -1
    elif each.leader == -1:
        each.leader = each.replicas[0]


def _sample(
    chance: random.Random, rows: Rows, partitions: list[_Partition], now: datetime, silent: int | None
) -> None:
    at = {broker: now + timedelta(milliseconds=chance.randrange(2000)) for broker in range(-1, BROKERS)}
    for broker in range(BROKERS):
        rack = RACKS[broker % len(RACKS)]
        known = {"at": at[broker], "broker": broker, "rack": rack}
        if broker == silent:
            rows["disks"].append(known | {"error": "it did not answer"})
            continue
        for path in DIRS:
            used = sum(each.size(broker) for each in partitions if broker in each.replicas)
            rows["disks"].append(known | {"log_dir": path, "total": 10**12, "usable": 10**12 - used})
    for each in partitions:
        name = {"topic": each.topic, "partition": each.number}
        topic_id = None if each.topic == "topic-0" else f"{each.topic}:{each.life}"
        replicas = {"leader": each.leader, "replicas": list(each.replicas), "isr": list(each.replicas)}
        rows["assignment"].append(name | replicas | {"at": at[-1], "topic_id": topic_id})
        for broker in each.replicas:
            if broker != silent:
                here = name | {"at": at[broker], "broker": broker, "topic_id": topic_id, "offset_lag": 0}
                path = DIRS[each.number % 2]
                size = each.size(broker)
                rows["replicas"].append(here | {"log_dir": path, "size": size, "is_future": False})
                if chance.random() < 0.05:
                    future = {"log_dir": DIRS[1 - each.number % 2], "size": size // 3, "is_future": True}
                    rows["replicas"].append(here | future)
        if each.leader not in (-1, silent):
            ends = {"leader_epoch": each.epoch, "earliest": each.earliest, "latest": each.latest}
            rows["offsets"].append(name | ends | {"at": at[each.leader], "broker": each.leader})
        for group, place in each.committed.items():
            member = None if group == "audit" else f"{group}-{each.number}"
            state = {"at": at[-1], "group": group, "state": "Stable", "assignor": "range", "member": member}
            rows["groups"].append(name | state | {"committed": place, "subscription": [each.topic]})
    idle = {
        "at": at[-1],
        "group": "readers",
        "state": "Stable",
        "member": "idle",
        "subscription": ["topic-1"],
    }
    rows["groups"].append(idle)


def _spoil(chance: random.Random, rows: Rows) -> None:
    """Drop, duplicate and shuffle rows."""
    for table, sampled in rows.items():
        kept = [row for row in sampled if table == "assignment" or chance.random() > 0.03]
        kept += [dict(row) for row in kept if chance.random() < 0.1]
        chance.shuffle(kept)
        rows[table] = kept


def _save(folder: Path, cluster: str, chance: random.Random, rows: Rows) -> None:
    for table, schema in SCHEMAS.items():
        days: dict[str, list[dict[str, Any]]] = {}
        for row in rows[table]:
            days.setdefault(row["at"].date().isoformat(), []).append(row)
        for day, of_day in days.items():
            where = folder / table / "v1" / f"cluster={cluster}" / f"day={day}"
            where.mkdir(parents=True)
            middle = chance.randrange(len(of_day) + 1)
            for number, part in enumerate((of_day[:middle], of_day[middle:])):
                pq.write_table(pa.Table.from_pylist(part, schema), where / f"part-{number}.parquet")
