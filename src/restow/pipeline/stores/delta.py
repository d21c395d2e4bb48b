"""Delta tables, in a folder or at any address that Spark reads.

LAKE/<table>/v1/                   partitioned by cluster and day, or by cluster
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.errors import InvalidInput
from restow.pipeline.address import DELTA_LOG
from restow.pipeline.files import is_address, lake_files
from restow.pipeline.schemas import CLUSTER, VERSION
from restow.pipeline.stores.snapshots import SnapshotTables
from restow.pipeline.stores.store import FILE, SIZE, TableSnapshot, is_version_there

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.address import LakeAddress
    from restow.pipeline.schemas import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CATALOG = "spark.sql.catalog.spark_catalog"


class DeltaTables(SnapshotTables):
    """A lake of Delta tables, which need not exist yet."""

    using = "delta"

    def __init__(self, spark: SparkSession, address: LakeAddress) -> None:
        super().__init__(spark)
        self._root = address.place if is_address(address.place) else str(Path(address.place).absolute())
        self.path = f"delta:{self._root}"
        self._files = lake_files(spark)
        if "delta" not in (spark.conf.get(_CATALOG, None) or ""):
            raise InvalidInput(
                f"{self.path}: this Spark session does not know Delta. Start it with Delta's jars, "
                "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
                f"{_CATALOG}=org.apache.spark.sql.delta.catalog.DeltaCatalog"
            )

    def has(self, about: Table) -> bool:
        folder = f"{self._root}/{about.name}"
        home = f"{folder}/v{VERSION}"
        if not is_version_there(self._files.folders(folder), folder):
            return False
        if self._files.exists(f"{home}/{DELTA_LOG}"):
            return True
        if any(each.startswith(f"{CLUSTER}=") for each in self._files.folders(home)):
            raise InvalidInput(
                f"{folder} is a folder of Parquet files, not a Delta table: --lake {self._root}"
            )
        return False

    def with_files(self, about: Table) -> DataFrame:
        file, size = f.col("_metadata.file_path").alias(FILE), f.col("_metadata.file_size").alias(SIZE)
        return self._shaped(about, self._table(about).select("*", file, size), FILE, SIZE)

    def history(self, about: Table) -> list[TableSnapshot]:
        rows = self._spark.sql(f"DESCRIBE HISTORY {self._name(about)}")
        columns = ("version", f.unix_micros("timestamp").alias("us"), "operation")
        return [
            TableSnapshot(
                number=row.version,
                at=_EPOCH + timedelta(microseconds=row.us),
                operation=row.operation,
                is_first=row.version == 0,
            )
            for row in rows.select(*columns).orderBy("version").collect()
        ]

    def forget(self, about: Table, older_than_s: int) -> None:
        self._spark.sql(f"VACUUM {self._name(about)} RETAIN {older_than_s / 3600:.2f} HOURS").collect()

    def _to_merge(self, about: Table) -> tuple[DataFrame, Mapping[str, str]]:
        """Return the rows without naming a snapshot: Delta reads them in the transaction that writes."""
        return self._table(about), {}

    def _name(self, about: Table) -> str:
        home = f"{self._root}/{about.name}/v{VERSION}".replace("`", "``")
        return f"delta.`{home}`"
