"""Tables of a format that commits snapshots. What Iceberg and Delta share is here, as SQL that both know.

Each write is one commit. Samples that are there already are left out of it, so a batch that is written again
after a kill adds nothing. Of two writers of the same samples at the same moment, Delta lets one look again;
Iceberg may add both, and then a read or a compaction takes them once. A table that lacks a newer column is
read with nulls, and gets the column with the next write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from restow.errors import LakeFailed
from restow.pipeline.schemas import AT, CLUSTER, DAY
from restow.pipeline.stores.store import FILE, file_order, gathered, stored_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame, SparkSession

    from restow.pipeline.schemas import Table
    from restow.pipeline.stores.store import TableSnapshot

SPARK_ERRORS = (PySparkException, Py4JError)
_OTHER_COMMIT = ("ValidationException", "ConcurrentAppend", "ConcurrentDelete", "DELTA_CONCURRENT")
_ADD_TRIES, _MERGE_TRIES = 10, 3
_THERE = "there_"


class SnapshotTables(ABC):
    """A lake of tables of one format, each made with its first rows."""

    keeps_past = True
    path: str
    using: str
    """The format, as `CREATE TABLE` names it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @abstractmethod
    def has(self, about: Table) -> bool: ...

    @abstractmethod
    def with_files(self, about: Table) -> DataFrame: ...

    @abstractmethod
    def history(self, about: Table) -> list[TableSnapshot]: ...

    def tidy(self, about: Table, older_than_s: int) -> None:  # noqa: B027
        """Leave what killed writers have left: no reader sees it, and `forget` removes it."""

    @abstractmethod
    def _name(self, about: Table) -> str:
        """Return the table's name in SQL."""

    @abstractmethod
    def _to_merge(self, about: Table) -> tuple[DataFrame, Mapping[str, str]]:
        """Return all rows, and options of a write that fails, or keeps them, if others add rows meanwhile."""

    def rows(self, about: Table, snapshot: int | None = None) -> DataFrame:
        return self._shaped(about, self._table(about, snapshot))

    def add(self, about: Table, rows: DataFrame) -> None:
        table = self._made(about)
        given = rows.dropDuplicates([*about.identity]).persist()
        try:
            if (within := _bounds(given)) is not None:
                busy = f"{about.name} in {self.path!r} is written to by too many at once: try again"
                _retried(lambda: self._append(about, given, within, table), _ADD_TRIES, busy)
        finally:
            given.unpersist()

    def replace(self, about: Table, rows: DataFrame) -> None:
        table = self._made(about)
        shaped = gathered(_filled(rows, table), CLUSTER)
        shaped.writeTo(self._name(about)).overwrite(f.lit(True))

    def compact(self, about: Table, clusters: Sequence[str] | None, before: date) -> int:
        """Merge each day in a commit of its own; late samples make it read the day again."""
        fewer = 0
        for day, places in self._scattered(about, clusters, before).items():
            busy = f"{about.name} of {day} in {self.path!r} still receives samples: compact it later"
            _retried(partial(self._merge, about, day, [*places]), _MERGE_TRIES, busy)
            fewer += sum(places.values()) - sum(self._files_by_cluster(about, day, [*places]).values())
        return fewer

    def _table(self, about: Table, snapshot: int | None = None) -> DataFrame:
        name = self._name(about)
        if snapshot is None:
            return self._spark.table(name)
        return self._spark.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}")  # noqa: S608 (our own name)

    def _shaped(self, about: Table, rows: DataFrame, *others: str) -> DataFrame:
        """Return our columns; an older table has nulls for those that it lacks."""
        there = set(rows.columns)
        own = (
            (f.col(each.name) if each.name in there else f.lit(None)).cast(each.kind).alias(each.name)
            for each in stored_columns(about)
        )
        return rows.select(*own, *others)

    def _made(self, about: Table) -> DataFrame:
        """Return the table as it is; make it first, or give it the columns that it lacks."""
        columns = stored_columns(about)
        if not self.has(about):
            whole = ", ".join(f"`{each.name}` {each.kind}" for each in columns)
            parts = ", ".join(about.partitioning)
            self._unless_done(
                f"CREATE TABLE IF NOT EXISTS {self._name(about)} ({whole}) USING {self.using} "
                f"PARTITIONED BY ({parts})",
                about,
            )
        there = set(self._spark.table(self._name(about)).columns)
        missing = ", ".join(f"`{each.name}` {each.kind}" for each in columns if each.name not in there)
        if missing:
            self._unless_done(f"ALTER TABLE {self._name(about)} ADD COLUMNS ({missing})", about)
        return self._spark.table(self._name(about))

    def _unless_done(self, statement: str, about: Table) -> None:
        """Run a statement that another writer may just have run, too."""
        try:
            self._spark.sql(statement)
        except SPARK_ERRORS:
            wanted = {each.name for each in stored_columns(about)}
            if not self.has(about) or not wanted <= set(self._spark.table(self._name(about)).columns):
                raise

    def _append(self, about: Table, rows: DataFrame, within: Column, table: DataFrame) -> None:
        """Add the rows that are not there; `within` holds for all of them."""
        there = self._spark.table(self._name(about)).where(within)
        there = there.select(*(f.col(name).alias(_THERE + name) for name in about.identity))
        same = (f.col(name).eqNullSafe(f.col(_THERE + name)) for name in about.identity)
        fresh = _filled(rows.join(there, reduce(and_, same), "left_anti"), table)
        gathered(fresh, *about.partitioning).writeTo(self._name(about)).append()

    def _merge(self, about: Table, day: date, clusters: Sequence[str]) -> None:
        """Write the rows of a day anew, each once and in order, if nobody adds to them meanwhile."""
        rows, options = self._to_merge(about)
        there = (f.col(DAY) == f.lit(day)) & f.col(CLUSTER).isin(*clusters)
        once = rows.where(there).dropDuplicates([*about.identity])
        ordered = gathered(once, *about.partitioning).sortWithinPartitions(*file_order(about))
        writer = ordered.writeTo(self._name(about))
        for name, value in options.items():
            writer = writer.option(name, value)
        writer.overwrite(there)

    def _scattered(
        self, about: Table, clusters: Sequence[str] | None, before: date
    ) -> dict[date, dict[str, int]]:
        """Return how many files each cluster has in a day, where there is more than one."""
        rows = self.with_files(about).where(f.col(DAY) < f.lit(before))
        if clusters is not None:
            rows = rows.where(f.col(CLUSTER).isin(*clusters))
        counts = rows.groupBy(DAY, CLUSTER).agg(f.countDistinct(FILE).alias("files")).where("files > 1")
        found: dict[date, dict[str, int]] = {}
        for row in counts.orderBy(DAY, CLUSTER).collect():
            found.setdefault(row[DAY], {})[row[CLUSTER]] = row["files"]
        return found

    def _files_by_cluster(self, about: Table, day: date, clusters: Sequence[str]) -> dict[str, int]:
        rows = self.with_files(about).where((f.col(DAY) == f.lit(day)) & f.col(CLUSTER).isin(*clusters))
        counts = rows.groupBy(CLUSTER).agg(f.countDistinct(FILE).alias("files"))
        return {row[CLUSTER]: row["files"] for row in counts.collect()}


def _retried(commit: Callable[[], None], tries: int, busy: str) -> None:
    """Commit again if another commit was faster; after so many tries raise an error with this message."""
    for tries_left in reversed(range(tries)):
        try:
            return commit()
        except SPARK_ERRORS as error:
            if not any(each in str(error) for each in _OTHER_COMMIT):
                raise
            if not tries_left:
                raise LakeFailed(busy) from error
    return None


def _filled(rows: DataFrame, table: DataFrame) -> DataFrame:
    """Return the rows in the table's columns; those of a newer table, which we do not know, are null."""
    return rows.select(*_filling(rows, table))


def _filling(rows: DataFrame, table: DataFrame) -> Iterator[Column]:
    given = set(rows.columns)
    for field in table.schema.fields:
        value = f.col(field.name) if field.name in given else f.lit(None)
        yield value.cast(field.dataType).alias(field.name)


def _bounds(rows: DataFrame) -> Column | None:
    """Return the condition that holds for all of these samples and few others; None without a row.

    By it, Spark reads only the files of these clusters, days and times.
    """
    names: dict[str, Any] = {"low": f.min(AT), "high": f.max(AT), "first": f.min(DAY), "last": f.max(DAY)}
    asked = rows.agg(
        f.collect_set(CLUSTER).alias("clusters"), *(name.alias(key) for key, name in names.items())
    )
    [row] = asked.select("clusters", "first", "last", f.unix_micros("low"), f.unix_micros("high")).collect()
    clusters, first, last, low_us, high_us = row
    if first is None:
        return None
    in_days = f.col(DAY).between(f.lit(first), f.lit(last))
    in_time = f.col(AT).between(f.timestamp_micros(f.lit(low_us)), f.timestamp_micros(f.lit(high_us)))
    return in_days & in_time & f.col(CLUSTER).isin(*clusters)
