"""The tables of the lake: their columns, what makes two rows the same, and how they lie in folders.

    LAKE/<table>/v1/cluster=<id>/day=<yyyy-mm-dd>/*.parquet      samples, by the day of `at`
    LAKE/<table>/v1/cluster=<id>/*.parquet                       what jobs make of them

`at` is when a broker answered, in UTC; all rows of one answer have the same. A sample is identified by the
table's key and `at`: whoever brings it twice has brought it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from restow.errors import InvalidInput

VERSION = 1
CLUSTER, AT, DAY = "cluster", "at", "day"

_INTS, _STRINGS = ArrayType(IntegerType(), False), ArrayType(StringType(), False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: columns in order, and the key that with `at` identifies a row.

    `sampled` tables only ever grow and are kept by day; the others are made anew by their job.
    """

    name: str
    schema: StructType
    key: tuple[str, ...]
    sampled: bool = True

    @property
    def identity(self) -> tuple[str, ...]:
        return (*self.key, AT) if self.sampled else self.key

    @property
    def partitioning(self) -> tuple[str, ...]:
        """The columns that are folders rather than in files."""
        return (CLUSTER, DAY) if self.sampled else (CLUSTER,)


def columns(*fields: tuple[str, DataType] | tuple[str, DataType, bool]) -> StructType:
    """A schema of names and types; what has a third value that is true may be null."""
    return StructType([StructField(name, kind, any(null)) for name, kind, *null in fields])


REPLICAS = Table(
    name="replicas",
    key=(CLUSTER, "broker", "log_dir", "topic", "partition", "is_future"),
    schema=columns(
        (CLUSTER, StringType()),
        (AT, TimestampType()),
        ("broker", IntegerType()),
        ("log_dir", StringType()),
        ("topic", StringType()),
        ("topic_id", StringType(), True),
        ("partition", IntegerType()),
        ("size", LongType()),
        ("offset_lag", LongType()),
        ("is_future", BooleanType()),
    ),
)
"""What each broker said of the replicas in its log dirs; sizes in bytes."""

OFFSETS = Table(
    name="offsets",
    key=(CLUSTER, "broker", "topic", "partition"),
    schema=columns(
        (CLUSTER, StringType()),
        (AT, TimestampType()),
        ("broker", IntegerType()),
        ("topic", StringType()),
        ("partition", IntegerType()),
        ("leader_epoch", IntegerType(), True),
        ("earliest", LongType()),
        ("latest", LongType()),
    ),
)
"""Where each partition's log begins and ends; `broker` is the leader that was asked."""

ASSIGNMENT = Table(
    name="assignment",
    key=(CLUSTER, "topic", "partition"),
    schema=columns(
        (CLUSTER, StringType()),
        (AT, TimestampType()),
        ("topic", StringType()),
        ("topic_id", StringType(), True),
        ("partition", IntegerType()),
        ("leader", IntegerType()),
        ("replicas", _INTS),
        ("isr", _INTS),
    ),
)
"""Who has replicas of what, and who leads: -1 is nobody."""

GROUPS = Table(
    name="groups",
    key=(CLUSTER, "group", "member", "topic", "partition"),
    schema=columns(
        (CLUSTER, StringType()),
        (AT, TimestampType()),
        ("group", StringType()),
        ("state", StringType()),
        ("assignor", StringType(), True),
        ("member", StringType(), True),
        ("client", StringType(), True),
        ("rack", StringType(), True),
        ("subscription", _STRINGS, True),
        ("topic", StringType(), True),
        ("partition", IntegerType(), True),
        ("committed", LongType(), True),
    ),
)
"""A row per group and partition held or committed; members that hold nothing have one without a topic."""

DISKS = Table(
    name="disks",
    key=(CLUSTER, "broker", "log_dir"),
    schema=columns(
        (CLUSTER, StringType()),
        (AT, TimestampType()),
        ("broker", IntegerType()),
        ("rack", StringType(), True),
        ("log_dir", StringType(), True),
        ("total", LongType(), True),
        ("usable", LongType(), True),
        ("error", StringType(), True),
    ),
)
"""Log dirs and their file systems; a broker that did not answer has one row, with an error and no dir."""

SAMPLED = (REPLICAS, OFFSETS, ASSIGNMENT, GROUPS, DISKS)

_JOBS = ("rates", "model", "skew", "forecast", "fleet", "lab")
"""Jobs that make a table of their own name: `restow.pipeline.jobs.<name>.TABLE`."""

NAMES = (*(table.name for table in SAMPLED), *_JOBS)


def table(name: str) -> Table:
    """The table of that name."""
    for each in SAMPLED:
        if each.name == name:
            return each
    if name not in _JOBS:
        raise InvalidInput(f"there is no table {name!r} in a lake: there are {', '.join(NAMES)}")
    made: Table = import_module(f"restow.pipeline.jobs.{name}").TABLE
    return made
