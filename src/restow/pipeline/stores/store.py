"""What a lake asks of the place where its rows are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.pipeline.address import DELTA, ICEBERG
from restow.pipeline.schemas import DAY, VERSION, Field, Table
from restow.pipeline.spark_types import struct_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date, datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from restow.pipeline.address import LakeAddress

FILE, SIZE = "stored_in", "stored_bytes"


@frozen
class TableSnapshot:
    """A state of a table in the past: its number, when it was committed, and by which operation."""

    number: int
    at: datetime
    operation: str
    is_first: bool
    """Whether the table began with it; otherwise older snapshots may be forgotten."""


class LakeStore(Protocol):
    """Keeps the tables of a lake. A killed writer leaves all rows of a file or commit, or none."""

    path: str
    """The lake, as messages name it."""
    keeps_past: bool
    """Whether `rows`, `history` and `forget` know snapshots."""

    def has(self, about: Table) -> bool:
        """Return whether there is this table; refuse one of a newer version."""

    def rows(self, about: Table, snapshot: int | None = None) -> DataFrame:
        """Return all rows of a table, repeated samples included, now or in a snapshot."""

    def with_files(self, about: Table) -> DataFrame:
        """Return all rows, each with the name and the size of its file, as `FILE` and `SIZE`."""

    def add(self, about: Table, rows: DataFrame) -> None:
        """Add samples, which may be there already."""

    def replace(self, about: Table, rows: DataFrame) -> None:
        """Replace all rows."""

    def compact(self, about: Table, clusters: Sequence[str] | None, before: date) -> int:
        """Merge the files of each day before this one. Return how many files went away."""

    def history(self, about: Table) -> list[TableSnapshot]:
        """Return the snapshots that can still be read, the oldest first."""

    def tidy(self, about: Table, older_than_s: int) -> None:
        """Remove what killed writers have left beside a table, if it is older than this."""

    def forget(self, about: Table, older_than_s: int) -> None:
        """Remove snapshots that are older than this, and files that no other snapshot needs."""


def store_at(spark: SparkSession, address: LakeAddress) -> LakeStore:
    """Return the store of the lake at this address."""
    if address.kind == ICEBERG:
        from restow.pipeline.stores.iceberg import IcebergTables

        return IcebergTables(spark, address)
    if address.kind == DELTA:
        from restow.pipeline.stores.delta import DeltaTables

        return DeltaTables(spark, address)
    from restow.pipeline.stores.folders import Folders

    return Folders(spark, address)


def stored_schema(about: Table) -> StructType:
    """Return the schema of what is stored: all columns may be null, and the day is a column too."""
    return struct_of(stored_columns(about))


def stored_columns(about: Table) -> tuple[Field, ...]:
    """Return the columns of `stored_schema`."""
    day = (Field(DAY, "date", True),) if about.by_day else ()
    return (*(Field(each.name, each.kind, True) for each in about.columns), *day)


def is_version_there(versions: Iterable[str], table: str) -> bool:
    """Return whether our version is among these, such as `v1`; refuse a newer one."""
    numbers = [int(each[1:]) for each in versions if each[:1] == "v" and each[1:].isdecimal()]
    newest = max(numbers, default=0)
    if newest > VERSION:
        raise InvalidInput(f"{table} has v{newest}, but this restow knows v{VERSION}: use a newer one")
    return VERSION in numbers


def file_order(about: Table) -> list[str]:
    """Return the columns by which the rows of a large file are sorted."""
    own = (name for name in about.identity if name not in about.partitioning)
    return [*about.partitioning, *own]


def gathered(rows: DataFrame, *columns: str) -> DataFrame:
    """Bring the rows of each folder together, so that it gets few files.

    Spark itself divides large ones again, but only where it plans queries anew after each stage, which
    sessions for small lakes do not.
    """
    plans_anew = rows.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true"
    return rows.hint("rebalance", *columns) if plans_anew else rows.repartition(*columns)
