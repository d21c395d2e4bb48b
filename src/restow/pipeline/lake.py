"""The lake: tables of samples and of the jobs' results, in Parquet folders, Iceberg tables or Delta tables.

Nothing is lost and nothing counts twice, even if processes are killed:

- A write is there as a whole, or repeated as a whole after a kill. How that is done is up to the store
  (`stores/`); two writers do not meet.
- A read takes each sample once, by its identity.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from restow.errors import InvalidInput, LakeFailed
from restow.pipeline.address import lake_address
from restow.pipeline.names import LONGEST_VALUE_BYTES, NOT_READ, NULL_VALUE
from restow.pipeline.schemas import AT, CLUSTER, DAY, NAMES, VERSION, Table, table
from restow.pipeline.stores import store_at
from restow.pipeline.stores.folders import Folders
from restow.pipeline.stores.store import FILE, SIZE, stored_schema
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame, SparkSession

    from restow.pipeline.stores import TableSnapshot

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings that a session needs so that times are right, also for other readers of the files."""

_CALLING = "An error occurred while calling"
_NO_FOLDER = "a lake cannot have a folder for this cluster id"


class Lake:
    """A lake at a place of any kind (`address.py`), which need not exist yet."""

    def __init__(self, spark: SparkSession, place: str, *, as_of: datetime | str | None = None) -> None:
        """Open a lake, perhaps as it was at a time, or when the snapshot `TABLE@NUMBER` was made."""
        for name, value in SETTINGS.items():
            if spark.conf.get(name, None) != value:
                raise InvalidInput(f"this Spark session has not {name}={value}: set it, times depend on it")
        self.spark = spark
        self._store = store_at(spark, lake_address(place))
        self.path = self._store.path
        self.past = None if as_of is None else self._moment(as_of)
        self._snapshots: dict[str, int | None] = {}

    def read(
        self,
        name: str,
        *,
        clusters: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        days: Iterable[date] | None = None,
        distinct: bool = True,
    ) -> DataFrame:
        """Return a table's rows with `since` ≤ at < `until`, of some days or all; none if there is no table.

        `distinct=False` is for jobs that remove repeated samples themselves.
        """
        about = table(name)
        rows = self._rows(about)
        if clusters is not None:
            rows = rows.where(f.col(CLUSTER).isin(*clusters))
        if about.sampled:
            if since is not None:
                rows = rows.where((f.col(DAY) >= f.to_date(f.lit(since))) & (f.col(AT) >= f.lit(since)))
            if until is not None:
                rows = rows.where((f.col(DAY) <= f.to_date(f.lit(until))) & (f.col(AT) < f.lit(until)))
            if days is not None:
                rows = rows.where(f.col(DAY).isin(*days))
            if distinct:
                rows = rows.dropDuplicates([*about.identity])
        return rows.select(*about.names)

    def write(self, rows: DataFrame, name: str) -> None:
        """Add samples, or replace a job's earlier result.

        Existing samples may be written again, in any order and at any time.
        """
        about = table(name)
        if self.past is not None:
            raise InvalidInput(
                f"{self.path!r} is open as it was at {self.past}: nothing can be written there"
            )
        shaped = rows.select(*_checked(rows, about))
        if about.by_day:
            shaped = shaped.withColumn(DAY, f.to_date(AT))
        self._has(about)  # or refuse a table of another kind or version
        with self._failing(f"{about.name} could not be written to"):
            if about.sampled:
                self._store.add(about, shaped)
            else:
                self._store.replace(about, shaped)

    def compact(self, name: str, *, clusters: Sequence[str] | None = None, days: int = 1) -> int:
        """Merge the files of each cluster and day into few large ones, each sample once and in order.

        The last `days` days stay as they are: they still receive samples. Return how many files went away.
        """
        about = table(name)
        if not about.sampled:
            raise InvalidInput(f"{name!r} is made anew by its job: there is nothing to compact")
        self.tidy(name)
        if not self._has(about):
            return 0
        today = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC).date()
        with self._failing(f"{about.name} could not be compacted in"):
            return self._store.compact(about, clusters, today - timedelta(days=days - 1))

    def describe(self) -> DataFrame:
        """Return rows, files, bytes and times of every table and cluster, repeated samples included."""
        found = None
        for name in NAMES:
            if not self._has(table(name)):
                continue
            rows = self._store.with_files(table(name))
            time = f.col(AT) if AT in rows.columns else f.lit(None).cast("timestamp")
            files = rows.groupBy(CLUSTER, FILE).agg(
                f.count("*").alias("rows"),
                f.first(SIZE).alias(SIZE),
                f.min(time).alias("first"),
                f.max(time).alias("last"),
            )
            part = files.groupBy(f.lit(name).alias("table"), f.lit(VERSION).alias("version"), CLUSTER).agg(
                f.sum("rows").alias("rows"),
                f.count("*").alias("files"),
                f.sum(SIZE).alias("bytes"),
                f.min("first").alias("first"),
                f.max("last").alias("last"),
            )
            found = part if found is None else found.unionByName(part)
        if found is None:
            raise InvalidInput(f"there is no lake at {self.path!r} yet: `restow collect --lake` begins one")
        return found.orderBy("table", CLUSTER)

    def tidy(self, name: str, older_than_s: int = 24 * 3600) -> None:
        """Remove files of killed writers, once they are too old to belong to a running one."""
        self._store.tidy(table(name), older_than_s)

    def in_folders(self) -> Folders:
        """Return the folders of this lake; refuse one of tables, whose files are not ours to choose."""
        if not isinstance(self._store, Folders):
            raise InvalidInput(
                f"{self.path!r} is a lake of tables, and only a lake of folders can be kept current: compute "
                "all of it with `restow pipeline run`, or copy it with `restow lake copy`"
            )
        return self._store

    @property
    def is_in_folders(self) -> bool:
        return isinstance(self._store, Folders)

    def write_aside(self, rows: DataFrame, about: Table, where: str) -> None:
        """Write rows of a table that is kept by day to a folder that no reader of the table sees."""
        shaped = rows.select(*_checked(rows, about)).withColumn(DAY, f.to_date(AT))
        with self._failing(f"{about.name} could not be written to"):
            self.in_folders().write_aside(about, shaped, where)

    def history(self) -> Iterator[tuple[str, TableSnapshot]]:
        """Yield the names of tables with their snapshots that can still be read, the oldest first."""
        self._need_past()
        for name in NAMES:
            if self._has(table(name)):
                for each in self._store.history(table(name)):
                    yield name, each

    def forget(self, name: str, older_than_s: int) -> None:
        """Remove snapshots that are older than this, and the files that no other snapshot needs."""
        self._need_past()
        about = table(name)
        if self._has(about):
            with self._failing(f"snapshots of {about.name} could not be removed from"):
                self._store.forget(about, older_than_s)

    def _has(self, about: Table) -> bool:
        with self._failing(f"{about.name} could not be looked up in"):
            return self._store.has(about)

    def _rows(self, about: Table) -> DataFrame:
        """Return all rows with their day, repeated samples included."""
        if self._has(about):
            if self.past is None:
                return self._store.rows(about)
            if about.name not in self._snapshots:
                self._snapshots[about.name] = self._snapshot(about, self.past)
            if (snapshot := self._snapshots[about.name]) is not None:
                return self._store.rows(about, snapshot)
        return self.spark.createDataFrame([], stored_schema(about))

    def _snapshot(self, about: Table, moment: datetime) -> int | None:
        """Return the snapshot that a table had at that time; None if it was not there yet."""
        history = self._store.history(about)
        before = [each.number for each in history if each.at <= moment]
        if before or not history or history[0].is_first:
            return before[-1] if before else None
        raise InvalidInput(
            f"--as-of {moment}: {about.name} in {self.path!r} remembers only what was since {history[0].at}"
        )

    def _moment(self, as_of: datetime | str) -> datetime:
        self._need_past()
        if not isinstance(as_of, str):
            return as_of if as_of.tzinfo else as_of.replace(tzinfo=UTC)
        name, _, number = as_of.partition("@")
        about = table(name)
        history = self._store.history(about) if self._has(about) else []
        for each in history:
            if str(each.number) == number:
                return each.at
        raise InvalidInput(
            f"{name} in {self.path!r} has no snapshot {number or 'without a number'}: "
            "`restow lake describe --history` lists them, and --as-of takes them like replicas@3"
        )

    def _need_past(self) -> None:
        if not self._store.keeps_past:
            raise InvalidInput(
                f"{self.path!r} is a lake of Parquet folders, which keep no past: --as-of, --history and "
                "--forget need an Iceberg or a Delta lake"
            )

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Turn Spark's errors of this block into one sentence."""
        try:
            yield
        except (PySparkException, Py4JError) as error:
            raise LakeFailed(f"{what} {self.path!r}: {_reason(error)}") from error


def _checked(rows: DataFrame, about: Table) -> list[Column]:
    """Return the table's columns of `rows`, or raise an error about a missing or wrong one."""
    given = {field.name: field for field in rows.schema.fields}
    missing = [name for name in about.names if name not in given]
    if missing:
        raise InvalidInput(
            f"{about.name} needs {', '.join(missing)}: there are only {', '.join(given) or 'no columns'}"
        )
    shaped = []
    for field in about.schema.fields:
        there = given[field.name].dataType
        if there.simpleString() != field.dataType.simpleString():
            raise InvalidInput(
                f"{about.name}.{field.name} is {there.simpleString()}, "
                f"but it must be {field.dataType.simpleString()}"
            )
        value = f.col(field.name)
        if not field.nullable:
            value = f.coalesce(value, f.raise_error(f.lit(f"a {field.name} is missing")).cast(field.dataType))
        if field.name == CLUSTER:
            value = f.when(_has_no_folder(value), f.raise_error(f.lit(_NO_FOLDER))).otherwise(value)
        shaped.append(value.alias(field.name))
    return shaped


def _has_no_folder(cluster: Column) -> Column:
    """Return whether no reader would find the folder of this cluster id: see `names.partition_value`."""
    return (
        cluster.isin("", NULL_VALUE)
        | cluster.endswith(NOT_READ)
        | (f.octet_length(cluster) > LONGEST_VALUE_BYTES)
    )


def _reason(error: Exception) -> str:
    """Return the sentence at the end of Spark's traceback."""
    lines = [line for line in str(error).splitlines() if not line.startswith(_CALLING)]
    said = [line for line in lines if ("a " in line and "is missing" in line) or _NO_FOLDER in line]
    return (said[0].split("] ")[-1] if said else lines[0].removeprefix(": ")).strip()
