"""Spark's schemas of the lake's tables."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from restow.pipeline.session import TASKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from restow.pipeline.schemas import Field

_SIMPLE: dict[str, DataType] = {
    kind.simpleString(): kind
    for kind in (
        BooleanType(),
        DateType(),
        DoubleType(),
        IntegerType(),
        LongType(),
        StringType(),
        TimestampType(),
        ArrayType(IntegerType(), False),
        ArrayType(StringType(), False),
        ArrayType(
            StructType().add("topic", StringType()).add("partition", IntegerType()).add("value", DoubleType())
        ),
    )
}


@cache
def struct_of(columns: tuple[Field, ...]) -> StructType:
    """Return Spark's schema of these columns."""
    return StructType([StructField(each.name, _SIMPLE[each.kind], each.nullable) for each in columns])


def tasks_of(spark: SparkSession) -> int:
    """Return into how many tasks this session spreads work: on this machine eight for each core."""
    return int(spark.conf.get(TASKS, None) or spark.conf.get("spark.sql.shuffle.partitions") or 1)
