"""Rates per partition and window: messages and bytes in, bytes out.

    replicas ─► where they lead ─┐
    offsets  ────────────────────┼─► one shuffle by partition ─► workers: growth by window ─► rates
    groups   ────────────────────┘

Messages come from log end offsets. Bytes come from the leader's size where nothing was deleted, otherwise
from messages times their average size. Consumers fetch messages of the size of those that are written in the
same window, because most of them read what is new. An interval belongs to the window it ends in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.pipeline.jobs.counters import COMMIT, END, SIZE
from restow.pipeline.jobs.leadership import PARTITION, joinable, leadership
from restow.pipeline.jobs.side_by_side import rates_of
from restow.pipeline.jobs.workers import in_workers
from restow.pipeline.schemas import AT, CLUSTER, Table, columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

TABLE = Table(
    name="rates",
    key=(CLUSTER, "topic", "partition", AT),
    sampled=False,
    daily=True,
    columns=columns(
        "cluster string, topic string, partition int, at timestamp, seconds double, samples bigint",
        "size bigint?, messages_in double?, bytes_in double?, bytes_consumed double?",
        "bytes_replicated double?, bytes_out double?",
    ),
)
"""`at` is the start of the window; all rates are per second, and null where unknown.

`bytes_out` is what consumers and followers fetch; it is null if either is unknown. Before the first and after
the last commit of any group, consumers fetch nothing.
"""


@frozen
class Windows:
    """The length of windows, and the longest interval that counts."""

    seconds: int = 300
    gap_s: float = 2 * 3600.0


def rates(
    replicas: DataFrame,
    assignment: DataFrame,
    offsets: DataFrame | None = None,
    groups: DataFrame | None = None,
    windows: Windows = Windows(),  # noqa: B008 (frozen)
    *,
    few_leaders: bool = True,
) -> DataFrame:
    """Return one row per partition and window with a sample. Repeated samples count once.

    `few_leaders` is what `has_few_runs` says of the assignment.
    """
    runs = joinable(leadership(assignment), few=few_leaders)
    return rates_beside(runs, replicas, offsets, groups, windows)


def readings(
    replicas: DataFrame,
    assignment: DataFrame,
    offsets: DataFrame | None,
    groups: DataFrame | None,
    *,
    few_leaders: bool,
) -> DataFrame:
    """Return all readings of counters, in any order; `rates_in` computes with them."""
    return _readings(joinable(leadership(assignment), few=few_leaders), replicas, offsets, groups)


def rates_beside(
    runs: DataFrame,
    replicas: DataFrame,
    offsets: DataFrame | None,
    groups: DataFrame | None,
    windows: Windows,
    first_commits: DataFrame | None = None,
) -> DataFrame:
    """Return the rates with these runs of leaders, which are `joinable`.

    `first_commits` (partition and `at`) are of partitions whose first commit is older than these samples.
    """
    found = _readings(runs, replicas, offsets, groups)
    if first_commits is not None:
        found = found.unionByName(_committed_once(first_commits), allowMissingColumns=True)
    rated = in_workers(TABLE.columns, rates_in(windows))
    return found.repartition(*PARTITION).mapInArrow(rated, TABLE.schema)


def _readings(
    runs: DataFrame,
    replicas: DataFrame,
    offsets: DataFrame | None,
    groups: DataFrame | None,
) -> DataFrame:
    found = _sizes(replicas, runs)
    if offsets is not None:
        found = found.unionByName(_ends(offsets), allowMissingColumns=True)
    if groups is not None:
        found = found.unionByName(_commits(groups), allowMissingColumns=True)
    return found


def rates_in(windows: Windows) -> Callable[[Any], dict[str, Any]]:
    """Return what a worker does with all readings of some partitions."""

    def rate(readings: Any) -> dict[str, Any]:
        return rates_of(readings, windows.gap_s, windows.seconds)

    return rate


def _sizes(replicas: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the sizes of leaders; a follower that catches up has a smaller one."""
    here = replicas.where(~f.col("is_future")).select(
        *PARTITION, f.unix_micros(AT).alias("at_us"), "broker", "size", "topic_id"
    )
    leads = (
        [f.col(f"here.{name}") == f.col(f"runs.{name}") for name in PARTITION]
        + [f.col("broker") == f.col("leader")]
        + [(f.col("at_us") >= f.col("begins_us")) & (f.col("at_us") < f.col("ends_us"))]
    )
    led = here.alias("here").join(runs.alias("runs"), on=leads)
    return led.select(
        *(f"here.{name}" for name in PARTITION),
        f.lit(SIZE).alias("kind"),
        f.lit("").alias("name"),
        "at_us",
        f.col("size").alias("value"),
        f.xxhash64("begins_us", "topic_id").alias("guard"),
        f.lit(None).cast("bigint").alias("floor"),
        f.lit(None).cast("int").alias("epoch"),
        "followers",
    )


def _ends(offsets: DataFrame) -> DataFrame:
    return offsets.select(
        *PARTITION,
        f.lit(END).alias("kind"),
        f.lit("").alias("name"),
        f.unix_micros(AT).alias("at_us"),
        f.col("latest").alias("value"),
        f.lit(0).cast("bigint").alias("guard"),
        f.col("earliest").alias("floor"),
        f.col("leader_epoch").alias("epoch"),
    )


def _commits(groups: DataFrame) -> DataFrame:
    return committed(groups).select(
        *PARTITION,
        f.lit(COMMIT).alias("kind"),
        f.col("group").alias("name"),
        f.unix_micros(AT).alias("at_us"),
        f.col("committed").alias("value"),
        f.lit(0).cast("bigint").alias("guard"),
    )


def committed(groups: DataFrame) -> DataFrame:
    """Return the rows of commits."""
    return groups.where(f.col("committed").isNotNull() & f.col("topic").isNotNull())


def _committed_once(first_commits: DataFrame) -> DataFrame:
    """Return one reading for each: it has no growth, and says since when consumers are known to fetch."""
    return first_commits.select(
        *PARTITION,
        f.lit(COMMIT).alias("kind"),
        f.lit("").alias("name"),
        f.unix_micros(AT).alias("at_us"),
        f.lit(0).cast("bigint").alias("value"),
        f.lit(0).cast("bigint").alias("guard"),
    )
