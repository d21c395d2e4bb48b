"""The lake: Parquet tables of samples and of the jobs' results, on any file system that Spark reads.

Nothing is lost and nothing counts twice, even if processes are killed:

- A write goes into a folder of its own, which readers do not see; then its files move into place one by one
  under unique names. Two writers do not meet. A killed writer leaves whole files or none, and repeats the
  same samples afterwards.
- A read takes each sample once, by its identity.
- Compaction moves its files into place before it removes the ones it has read: in between, a sample is there
  twice and counts once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from restow.errors import InvalidInput, LakeFailed
from restow.pipeline.files import lake_files, path_for
from restow.pipeline.names import LONGEST_VALUE_BYTES, NOT_READ, NULL_VALUE, value_of
from restow.pipeline.sampling.sample_files import STAGING
from restow.pipeline.schemas import AT, CLUSTER, DAY, NAMES, VERSION, Field, Table, table
from restow.pipeline.spark_types import struct_of
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings that a session needs so that times are right, also for other readers of the files."""

_STAGING = "_staging"
_NO_FOLDER = "a lake cannot have a folder for this cluster id"


class Lake:
    """A lake at a path, which need not exist yet."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path_for(spark, path.rstrip("/") or "/")
        self.spark = spark
        self._files = lake_files(spark)
        for name, value in SETTINGS.items():
            if spark.conf.get(name, None) != value:
                raise InvalidInput(f"this Spark session has not {name}={value}: set it, times depend on it")

    def read(
        self,
        name: str,
        *,
        clusters: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        distinct: bool = True,
    ) -> DataFrame:
        """Return a table's rows with `since` ≤ at < `until`; none if the table does not exist yet.

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
            if distinct:
                rows = rows.dropDuplicates([*about.identity])
        return rows.select(*about.names)

    def write(self, rows: DataFrame, name: str) -> None:
        """Add samples, or replace a job's earlier result.

        Existing samples may be written again, in any order and at any time.
        """
        about = table(name)
        shaped = rows.select(*_checked(rows, about))
        if about.sampled:
            self._add(about, shaped.withColumn(DAY, f.to_date(AT)))
        else:
            self._replace(about, shaped)

    def compact(self, name: str, *, clusters: Sequence[str] | None = None, days: int = 1) -> int:
        """Merge the files of each cluster and day into few large ones, each sample once and in order.

        The last `days` days stay as they are: they still receive samples. Return how many files went away.
        """
        about = table(name)
        if not about.sampled:
            raise InvalidInput(f"{name!r} is made anew by its job: there is nothing to compact")
        self.tidy(name)
        scattered = self._scattered(about, clusters, days)
        if not scattered:
            return 0
        before = {path for files in scattered for path in files}
        rows = self.spark.read.schema(_stored(about)).option("basePath", self._home(about))
        ordered = rows.parquet(*sorted(before)).dropDuplicates([*about.identity])
        after = self._add(about, ordered, in_order=True)
        self._files.remove(*before)
        return len(before) - after

    def describe(self) -> DataFrame:
        """Return rows, files, bytes and times of every table and cluster, repeated samples included."""
        found = None
        for name in NAMES:
            if not self._is_there(table(name)):
                continue
            rows = self._stored_rows(table(name))
            time = f.col(AT) if AT in rows.columns else f.lit(None).cast("timestamp")
            files = rows.groupBy(CLUSTER, f.col("_metadata.file_path").alias("file")).agg(
                f.count("*").alias("rows"),
                f.first("_metadata.file_size").alias("size"),
                f.min(time).alias("first"),
                f.max(time).alias("last"),
            )
            part = files.groupBy(f.lit(name).alias("table"), f.lit(VERSION).alias("version"), CLUSTER).agg(
                f.sum("rows").alias("rows"),
                f.count("*").alias("files"),
                f.sum("size").alias("bytes"),
                f.min("first").alias("first"),
                f.max("last").alias("last"),
            )
            found = part if found is None else found.unionByName(part)
        if found is None:
            raise InvalidInput(f"there is no lake at {self.path!r} yet: `restow collect --lake` begins one")
        return found.orderBy("table", CLUSTER)

    def tidy(self, name: str, older_than_s: int = 24 * 3600) -> None:
        """Remove files of killed writers, once they are too old to belong to a running one."""
        for folder in (f"{self._home(table(name))}/{_STAGING}", f"{self.path}/{STAGING}"):
            self._files.remove_old(folder, older_than_s)

    def _home(self, about: Table) -> str:
        return f"{self.path}/{about.name}/v{VERSION}"

    def _rows(self, about: Table) -> DataFrame:
        """Return all rows with their day, repeated samples included."""
        if not self._is_there(about):
            return self.spark.createDataFrame([], _stored(about))
        return self._stored_rows(about)

    def _stored_rows(self, about: Table) -> DataFrame:
        return self.spark.read.schema(_stored(about)).parquet(self._home(about))

    def _is_there(self, about: Table) -> bool:
        """Return whether the lake has this table; refuse one of a newer version."""
        versions = self._files.folders(f"{self.path}/{about.name}")
        newer = [version for version in versions if version > f"v{VERSION}"]
        if newer:
            raise InvalidInput(
                f"{self.path}/{about.name} has {newer[-1]}, but this restow knows v{VERSION}: use a newer one"
            )
        return f"v{VERSION}" in versions

    def _add(self, about: Table, rows: DataFrame, *, in_order: bool = False) -> int:
        """Write beside the table, then move the files into it. Return how many files were added."""
        home = self._home(about)
        staging = f"{home}/{_STAGING}/{uuid4().hex}"
        shaped = rows.hint("rebalance", *about.partitioning)
        if in_order:
            shaped = shaped.sortWithinPartitions(*about.partitioning, *_order(about), AT)
        self._save(shaped, about, staging)
        moved = self._files.move_within(staging, home)
        self._files.remove(staging)
        return moved

    def _replace(self, about: Table, rows: DataFrame) -> None:
        """Write beside the table, then swap the two."""
        home = self._home(about)
        staging = f"{self.path}/{about.name}/{_STAGING}/{uuid4().hex}"
        self._save(rows.hint("rebalance", CLUSTER), about, f"{staging}/new")
        if self._files.exists(home):
            self._files.move(home, f"{staging}/old")
        self._files.move(f"{staging}/new", home)
        self._files.remove(staging)

    def _save(self, rows: DataFrame, about: Table, where: str) -> None:
        try:
            rows.write.partitionBy(*about.partitioning).parquet(where)
        except PySparkException as error:
            self._files.remove(where)
            what = f"{about.name} could not be written to {self.path!r}"
            raise LakeFailed(f"{what}: {_reason(error)}") from error

    def _scattered(self, about: Table, clusters: Sequence[str] | None, days: int) -> list[list[str]]:
        """Return the files of each day that has more than one."""
        if not self._is_there(about):
            return []
        home = self._home(about)
        recent = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC).date() - timedelta(days=days - 1)
        found: list[list[str]] = []
        for place in self._files.folders(home):
            key, _, value = place.partition("=")
            if key != CLUSTER or (clusters is not None and value_of(value) not in clusters):
                continue
            by_day: dict[str, list[str]] = {}
            for path in self._files.within(f"{home}/{place}"):
                by_day.setdefault(path.partition("/")[0], []).append(f"{home}/{place}/{path}")
            found += [files for day, files in by_day.items() if day < f"{DAY}={recent.isoformat()}"]
        return [files for files in found if len(files) > 1]


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


def _stored(about: Table) -> StructType:
    """Return the schema for reading: all columns may be null, and folders are columns too."""
    day = (Field(DAY, "date", True),) if about.sampled else ()
    return struct_of((*(Field(each.name, each.kind, True) for each in about.columns), *day))


def _order(about: Table) -> list[str]:
    return [name for name in about.key if name != CLUSTER]


def _reason(error: Exception) -> str:
    """Return the sentence at the end of Spark's traceback."""
    lines = str(error).splitlines()
    said = [line for line in lines if ("a " in line and "is missing" in line) or _NO_FOLDER in line]
    return (said[0].split("] ")[-1] if said else str(error).splitlines()[0]).strip()
