"""Iceberg tables, in a catalog that the Spark session is configured for.

CATALOG.DATABASE.<table>_v1        partitioned by cluster and day, or by cluster
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.errors import InvalidInput
from restow.pipeline.schemas import VERSION
from restow.pipeline.stores.snapshots import SnapshotTables
from restow.pipeline.stores.store import FILE, SIZE, TableSnapshot, is_version_there

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.address import LakeAddress
    from restow.pipeline.schemas import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CATALOG = "org.apache.iceberg.spark.SparkCatalog"


class IcebergTables(SnapshotTables):
    """A lake of Iceberg tables; its database is made with the first table."""

    using = "iceberg"

    def __init__(self, spark: SparkSession, address: LakeAddress) -> None:
        super().__init__(spark)
        self.path = address.text
        self._catalog = address.catalog
        self._database = ".".join(f"`{each}`" for each in address.place.split("."))
        self._plain = address.place.partition(".")[2]
        setting = f"spark.sql.catalog.{self._catalog}"
        if spark.conf.get(setting, None) is None:
            raise InvalidInput(
                f"{self.path}: this Spark session has no catalog {self._catalog!r}. Give --conf "
                f"{setting}={_CATALOG} and its settings, such as --conf {setting}.type=rest "
                f"--conf {setting}.uri=https://…"
            )

    def has(self, about: Table) -> bool:
        if not self._spark.catalog.databaseExists(self._database):
            return False
        prefix = f"{about.name}_"
        named = self._spark.sql(f"SHOW TABLES IN {self._database}").collect()
        versions = [row.tableName.removeprefix(prefix) for row in named if row.tableName.startswith(prefix)]
        return is_version_there(versions, f"{about.name} of {self.path}")

    def with_files(self, about: Table) -> DataFrame:
        files = self._spark.table(f"{self._name(about)}.files")
        sizes = files.select(f.col("file_path").alias(FILE), f.col("file_size_in_bytes").alias(SIZE))
        rows = self._table(about).withColumn(FILE, f.col("_file"))
        return self._shaped(about, rows.join(f.broadcast(sizes), FILE), FILE, SIZE)

    def history(self, about: Table) -> list[TableSnapshot]:
        """Return the ancestors of the current snapshot: one that was rolled back counts no more."""
        made, done = (self._spark.table(f"{self._name(about)}.{each}") for each in ("history", "snapshots"))
        rows = made.where("is_current_ancestor").join(done.select("snapshot_id", "operation"), "snapshot_id")
        columns = ("snapshot_id", f.unix_micros("made_current_at").alias("us"), "operation", "parent_id")
        by_number = {row.snapshot_id: row for row in rows.select(*columns).collect()}
        number = next(iter(by_number.keys() - {row.parent_id for row in by_number.values()}), None)
        found = []
        while (row := by_number.get(number)) is not None:
            at = _EPOCH + timedelta(microseconds=row.us)
            first = row.parent_id is None
            found.append(
                TableSnapshot(number=row.snapshot_id, at=at, operation=row.operation, is_first=first)
            )
            number = row.parent_id
        return found[::-1]

    def forget(self, about: Table, older_than_s: int) -> None:
        where = f"table => '{self._plain}.{about.name}_v{VERSION}'"
        moment = f"older_than => timestamp_seconds(unix_timestamp() - {older_than_s})"
        for procedure in ("expire_snapshots", "remove_orphan_files"):
            self._spark.sql(f"CALL `{self._catalog}`.system.{procedure}({where}, {moment})").collect()

    def _made(self, about: Table) -> DataFrame:
        self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._database}")
        return super()._made(about)

    def _name(self, about: Table) -> str:
        return f"{self._database}.`{about.name}_v{VERSION}`"

    def _to_merge(self, about: Table) -> tuple[DataFrame, Mapping[str, str]]:
        snapshot = self.history(about)[-1].number
        return self._table(about, snapshot), {
            "isolation-level": "serializable",
            "validate-from-snapshot-id": str(snapshot),
            # Rows stay in the order that we have given them.
            "distribution-mode": "none",
            "fanout-enabled": "true",
        }
