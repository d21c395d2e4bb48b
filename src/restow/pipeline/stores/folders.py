"""Tables as folders of Parquet files, on any file system that Spark reads.

    LAKE/<table>/v1/cluster=<id>/day=<yyyy-mm-dd>/*.parquet      samples
    LAKE/rates/v1/cluster=<id>/day=<yyyy-mm-dd>/*.parquet        rates, by the day of their window
    LAKE/<table>/v1/cluster=<id>/*.parquet                       other results of jobs

A write goes into a folder of its own, which readers do not see; then its files move into place one by one
under unique names. Two writers do not meet. A killed writer leaves whole files or none, and repeats the same
samples afterwards. Compaction moves its files into place before it removes the ones it has read: in between,
a sample is there twice and counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as f

from restow.errors import InvalidInput
from restow.pipeline.address import DELTA_LOG
from restow.pipeline.files import lake_files, path_for
from restow.pipeline.names import STAGING, value_of
from restow.pipeline.schemas import CLUSTER, DAY, VERSION
from restow.pipeline.stores.store import FILE, SIZE, file_order, gathered, is_version_there, stored_schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.address import LakeAddress
    from restow.pipeline.schemas import Table
    from restow.pipeline.stores.store import TableSnapshot

_STAGING = "_staging"


class Folders:
    """A lake of Parquet folders, which need not exist yet."""

    keeps_past = False

    def __init__(self, spark: SparkSession, address: LakeAddress) -> None:
        self.path = path_for(spark, address.place)
        self._spark = spark
        self._files = lake_files(spark)

    def has(self, about: Table) -> bool:
        folder = f"{self.path}/{about.name}"
        if not is_version_there(self._files.folders(folder), folder):
            return False
        if self._files.exists(f"{self._home(about)}/{DELTA_LOG}"):
            raise InvalidInput(f"{folder} is a Delta table, not a folder of files: --lake delta:{self.path}")
        return True

    def rows(self, about: Table, snapshot: int | None = None) -> DataFrame:  # noqa: ARG002
        return self._spark.read.schema(stored_schema(about)).parquet(self._home(about))

    def rows_in(self, about: Table, home: str, files: Sequence[str]) -> DataFrame:
        """Return all rows of these files of a table in `home`, repeated samples included."""
        if not files:
            return self._spark.createDataFrame([], stored_schema(about)).select(*about.names)
        rows = self._spark.read.schema(stored_schema(about)).option("basePath", home)
        return rows.parquet(*sorted(files)).select(*about.names)

    def write_aside(self, about: Table, rows: DataFrame, where: str) -> None:
        """Write rows to a folder that no reader of the table sees."""
        self._save(gathered(rows, *about.partitioning), about, where)

    def with_files(self, about: Table) -> DataFrame:
        file, size = f.col("_metadata.file_path").alias(FILE), f.col("_metadata.file_size").alias(SIZE)
        return self.rows(about).select("*", file, size)

    def add(self, about: Table, rows: DataFrame) -> None:
        self._add(about, gathered(rows, *about.partitioning))

    def replace(self, about: Table, rows: DataFrame) -> None:
        """Write beside the table, then swap the two."""
        home = self._home(about)
        staging = f"{self.path}/{about.name}/{_STAGING}/{uuid4().hex}"
        self._save(gathered(rows, *about.partitioning), about, f"{staging}/new")
        if self._files.exists(home):
            self._files.move(home, f"{staging}/old")
        self._files.move(f"{staging}/new", home)
        self._files.remove(staging)

    def compact(self, about: Table, clusters: Sequence[str] | None, before: date) -> int:
        scattered = self._scattered(about, clusters, before)
        if not scattered:
            return 0
        read = {path for files in scattered for path in files}
        rows = self._spark.read.schema(stored_schema(about)).option("basePath", self._home(about))
        once = rows.parquet(*sorted(read)).dropDuplicates([*about.identity])
        ordered = gathered(once, *about.partitioning).sortWithinPartitions(*file_order(about))
        after = self._add(about, ordered)
        self._files.remove(*read)
        return len(read) - after

    def history(self, about: Table) -> list[TableSnapshot]:  # noqa: ARG002
        return []

    def tidy(self, about: Table, older_than_s: int) -> None:
        for folder in (f"{self._home(about)}/{_STAGING}", f"{self.path}/{STAGING}"):
            self._files.remove_old(folder, older_than_s)

    def forget(self, about: Table, older_than_s: int) -> None:
        """Do nothing: there are no snapshots."""

    def _home(self, about: Table) -> str:
        return f"{self.path}/{about.name}/v{VERSION}"

    def _add(self, about: Table, rows: DataFrame) -> int:
        """Write beside the table, then move the files into it. Return how many were added."""
        home = self._home(about)
        staging = f"{home}/{_STAGING}/{uuid4().hex}"
        self._save(rows, about, staging)
        moved = self._files.move_within(staging, home)
        self._files.remove(staging)
        return moved

    def _save(self, rows: DataFrame, about: Table, where: str) -> None:
        try:
            rows.write.partitionBy(*about.partitioning).parquet(where)
        except Exception:
            self._files.remove(where)
            raise

    def _scattered(self, about: Table, clusters: Sequence[str] | None, before: date) -> list[list[str]]:
        """Return the files of each day that has more than one."""
        home = self._home(about)
        found: list[list[str]] = []
        for place in self._files.folders(home):
            key, _, value = place.partition("=")
            if key != CLUSTER or (clusters is not None and value_of(value) not in clusters):
                continue
            by_day: dict[str, list[str]] = {}
            for path in self._files.within(f"{home}/{place}"):
                by_day.setdefault(path.partition("/")[0], []).append(f"{home}/{place}/{path}")
            found += [files for day, files in by_day.items() if day < f"{DAY}={before.isoformat()}"]
        return [files for files in found if len(files) > 1]
