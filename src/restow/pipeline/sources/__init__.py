"""Spark data sources for a cluster: `restow.replicas`, `.offsets`, `.assignment`, `.groups`, `.disks`, and
all of them in one as `restow.samples`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.pipeline.sources.source import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SOURCES", "register"]


def register(spark: SparkSession) -> None:
    """Register the sources with a session."""
    for source in SOURCES:
        spark.dataSource.register(source)
