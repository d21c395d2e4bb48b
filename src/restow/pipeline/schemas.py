"""The tables of the lake: their columns, keys and folders.

    LAKE/<table>/v1/cluster=<id>/day=<yyyy-mm-dd>/*.parquet      samples, by the day of `at`
    LAKE/rates/v1/cluster=<id>/day=<yyyy-mm-dd>/*.parquet        rates, by the day of their window
    LAKE/<table>/v1/cluster=<id>/*.parquet                       other results of jobs

`at` is when a broker answered, in UTC; all rows of one answer have the same. The table's key and `at`
identify a sample: written twice, it counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

VERSION = 1
CLUSTER, AT, DAY = "cluster", "at", "day"


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its kind as Spark writes it, like `bigint` or `array<int>`, and whether it may be null."""

    name: str
    kind: str
    nullable: bool = False


@frozen
class Table:
    """One table: columns in order, and the key that with `at` identifies a row.

    `sampled` tables only grow and are kept by day; a job rewrites each of the others. `daily` ones of those
    are kept by day too, so that the last days can be written anew.
    """

    name: str
    columns: tuple[Field, ...]
    key: tuple[str, ...]
    sampled: bool = True
    daily: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.columns)

    @property
    def schema(self) -> StructType:
        """Return Spark's schema. Nothing else here needs Spark."""
        from restow.pipeline.spark_types import struct_of

        return struct_of(self.columns)

    @property
    def identity(self) -> tuple[str, ...]:
        return (*self.key, AT) if self.sampled else self.key

    @property
    def by_day(self) -> bool:
        return self.sampled or self.daily

    @property
    def partitioning(self) -> tuple[str, ...]:
        """Return the columns that are folders instead of being in files."""
        return (CLUSTER, DAY) if self.by_day else (CLUSTER,)


def columns(*definitions: str) -> tuple[Field, ...]:
    """Parse columns like `topic string, size bigint?`: name, kind, and a question mark if it may be null."""
    found = []
    for definition in ", ".join(definitions).split(", "):
        name, kind = definition.split(" ")
        found.append(Field(name, kind.removesuffix("?"), kind.endswith("?")))
    return tuple(found)


@cache
def arrow_schema(columns: tuple[Field, ...]) -> Any:
    """Return Arrow's schema of these columns, equal to Spark's."""
    import pyarrow as pa

    kinds = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
        "array<int>": pa.list_(pa.field("element", pa.int32(), nullable=False)),
        "array<string>": pa.list_(pa.field("element", pa.string(), nullable=False)),
    }
    return pa.schema([pa.field(each.name, kinds[each.kind], each.nullable) for each in columns])


REPLICAS = Table(
    name="replicas",
    key=(CLUSTER, "broker", "log_dir", "topic", "partition", "is_future"),
    columns=columns(
        "cluster string, at timestamp, broker int, log_dir string, topic string, topic_id string?",
        "partition int, size bigint, offset_lag bigint, is_future boolean",
    ),
)
"""The replicas in each broker's log dirs; sizes in bytes."""

OFFSETS = Table(
    name="offsets",
    key=(CLUSTER, "broker", "topic", "partition"),
    columns=columns(
        "cluster string, at timestamp, broker int, topic string, partition int, leader_epoch int?",
        "earliest bigint, latest bigint",
    ),
)
"""Each partition's log start and end offsets; `broker` is the leader that answered."""

ASSIGNMENT = Table(
    name="assignment",
    key=(CLUSTER, "topic", "partition"),
    columns=columns(
        "cluster string, at timestamp, topic string, topic_id string?, partition int, leader int",
        "replicas array<int>, isr array<int>",
    ),
)
"""Each partition's replicas and leader; leader -1 means none."""

GROUPS = Table(
    name="groups",
    key=(CLUSTER, "group", "member", "topic", "partition"),
    columns=columns(
        "cluster string, at timestamp, group string, state string, assignor string?, member string?",
        "client string?, rack string?, subscription array<string>?, topic string?, partition int?",
        "committed bigint?",
    ),
)
"""A row per group and assigned or committed partition, and one without a topic for each idle member."""

DISKS = Table(
    name="disks",
    key=(CLUSTER, "broker", "log_dir"),
    columns=columns(
        "cluster string, at timestamp, broker int, rack string?, log_dir string?, total bigint?",
        "usable bigint?, error string?",
    ),
)
"""Log dirs and their file systems; a broker that did not answer has one row, with an error and no dir."""

SAMPLED = (REPLICAS, OFFSETS, ASSIGNMENT, GROUPS, DISKS)

_JOBS = ("rates", "model", "skew", "forecast", "alerts", "fleet", "lab")
"""Jobs that write a table of their own name: `restow.pipeline.jobs.<name>.TABLE`."""

NAMES = (*(table.name for table in SAMPLED), *_JOBS)


def table(name: str) -> Table:
    """Return the table of this name."""
    for each in SAMPLED:
        if each.name == name:
            return each
    if name not in _JOBS:
        raise InvalidInput(f"there is no table {name!r} in a lake: there are {', '.join(NAMES)}")
    made: Table = import_module(f"restow.pipeline.jobs.{name}").TABLE
    return made
