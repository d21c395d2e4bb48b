"""Import samples of other tools: exports of Prometheus or JMX as CSV or Parquet, and a file that maps them.

    table = "replicas"
    format = "csv"                                     # or "parquet"

    [where]                                            # only rows with these values
    metric = "kafka_log_log_size"

    [columns]
    cluster   = { value = "production" }               # the same in all rows
    at        = { column = "timestamp", unit = "ms" }  # s, ms, us; without a unit ISO 8601 text
    broker    = { column = "instance", pattern = "kafka-(\\d+)" }   # what the first group matches
    topic     = "topic"                                # as it is
    partition = "partition"
    size      = "value"
    log_dir   = { value = "/data" }

    # assignment: replicas = { column = "replicas", separator = "," }

An optional column without a mapping is null. An imported replica counts as current and caught up. The jobs
need the leaders: import `assignment`, too.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, TimestampType

from restow._frozen import frozen
from restow.errors import InvalidDocument, InvalidInput
from restow.pipeline.schemas import SAMPLED, Table, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

FORMATS = ("csv", "parquet")
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000}
_USUAL: Mapping[str, Mapping[str, Any]] = {"replicas": {"offset_lag": 0, "is_future": False}}
_KNOWN = {"column", "value", "unit", "pattern", "separator"}


@frozen
class ColumnSource:
    """The source of a column's values: another column, or a constant."""

    column: str | None = None
    value: Any = None
    unit: str | None = None
    pattern: str | None = None
    separator: str | None = None


@frozen
class ImportMap:
    """A mapping file."""

    table: Table
    format: str
    where: Mapping[str, str]
    columns: Mapping[str, ColumnSource]


def import_map(text: str, source: str) -> ImportMap:
    """Parse a mapping file. `source` names it in errors."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidDocument(f"{source} is not TOML: {error}") from None
    odd = said.keys() - {"table", "format", "where", "columns"}
    if odd:
        raise InvalidDocument(f"{source} says {min(odd)!r}: it may say table, format, where and columns")
    names = [each.name for each in SAMPLED]
    if said.get("table") not in names:
        raise InvalidDocument(f"{source} must say which table it is: {', '.join(names)}")
    if said.get("format") not in FORMATS:
        raise InvalidDocument(f"{source} must say which format it is: {' or '.join(FORMATS)}")
    about = table(said["table"])
    given = said.get("columns", {})
    sources = {name: _source(name, each, source) for name, each in given.items()}
    unknown = sources.keys() - set(about.names)
    if unknown:
        raise InvalidDocument(
            f"{source}: {about.name} has no column {min(unknown)!r}; it has {', '.join(about.names)}"
        )
    usual = {name: ColumnSource(value=value) for name, value in _USUAL.get(about.name, {}).items()}
    whole = usual | sources
    missing = [each.name for each in about.schema.fields if not each.nullable and each.name not in whole]
    if missing:
        raise InvalidDocument(f"{source} does not say where {', '.join(missing)} of {about.name} come from")
    where = {name: str(value) for name, value in said.get("where", {}).items()}
    return ImportMap(table=about, format=said["format"], where=where, columns=whole)


def _source(name: str, said: Any, source: str) -> ColumnSource:
    if isinstance(said, str):
        return ColumnSource(column=said)
    if not isinstance(said, dict) or said.keys() - _KNOWN or ("column" in said) == ("value" in said):
        raise InvalidDocument(
            f"{source}, {name}: write a column's name, or {{ column = … }} or {{ value = … }}, "
            "the first perhaps with unit, pattern or separator"
        )
    found = ColumnSource(**said)
    if found.unit is not None and found.unit not in _UNITS:
        raise InvalidDocument(f"{source}, {name}: the unit {found.unit!r} is none of {', '.join(_UNITS)}")
    if found.pattern is not None:
        try:
            groups = re.compile(found.pattern).groups
        except re.error as error:
            raise InvalidDocument(f"{source}, {name}: the pattern cannot be read: {error}") from None
        if groups < 1:
            raise InvalidDocument(f"{source}, {name}: put what is wanted of the pattern into brackets")
    return found


def imported(spark: SparkSession, paths: Sequence[str], given: ImportMap) -> DataFrame:
    """Return the files' rows in the table's schema. A malformed value fails when Spark reads it."""
    reader = spark.read.option("header", "true") if given.format == "csv" else spark.read
    try:
        rows: DataFrame = getattr(reader, given.format)(*([list(paths)] if given.format == "csv" else paths))
        columns = rows.columns  # a Connect server looks for the files only now
    except AnalysisException as error:
        raise InvalidInput(f"{', '.join(paths)}: {str(error).splitlines()[0]}") from None
    wanted = [each.column for each in given.columns.values() if each.column is not None]
    for name in (*given.where, *wanted):
        if name not in columns:
            raise InvalidInput(f"{paths[0]} has no column {name!r}: it has {', '.join(columns)}")
    for name, value in given.where.items():
        rows = rows.where(_named(name).cast("string") == value)
    shaped = [
        _value(given.columns.get(field.name, ColumnSource()), field.dataType).alias(field.name)
        for field in given.table.schema.fields
    ]
    return rows.select(*shaped)


def _named(column: str) -> Column:
    return f.col(f"`{column.replace('`', '``')}`")


def _value(source: ColumnSource, kind: DataType) -> Column:
    if source.column is None:
        return f.lit(source.value).cast(kind)
    value = _named(source.column)
    if source.pattern is not None:
        found = f.regexp_extract(value.cast("string"), source.pattern, 1)
        value = f.when(found != "", found)
    if source.unit is not None and isinstance(kind, TimestampType):
        return f.timestamp_micros((value.cast("double") * (1_000_000 // _UNITS[source.unit])).cast("bigint"))
    if source.separator is not None and isinstance(kind, ArrayType):
        parts = f.split(value.cast("string"), re.escape(source.separator))
        return f.transform(parts, lambda each: f.trim(each).cast(kind.elementType))
    if kind.simpleString() in ("int", "bigint"):
        return f.coalesce(value.try_cast(kind), value.cast("double").cast(kind))
    return value.cast(kind)
