"""Settings of test sessions for lakes of Iceberg and Delta tables, if the pyspark in use has a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.java import Missing, java
from restow.pipeline.address import DELTA, ICEBERG
from restow.pipeline.jars import NoSpark, has_jars
from restow.pipeline.session import with_lake

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CATALOG = "lakes"
"""The Iceberg catalog of test sessions: a folder."""
FORMATS = tuple(kind for kind in (ICEBERG, DELTA) if has_jars(kind))
"""The table formats that the installed pyspark has a runtime for."""


def with_formats(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the settings with all formats, and with a catalog whose tables are in `folder`."""
    java()
    found = dict(settings)
    if ICEBERG in FORMATS:
        found |= catalog_settings(folder)
    try:
        for kind in FORMATS:
            found = with_lake(found, f"{kind}:{CATALOG}.any")
    except NoSpark as error:
        raise Missing(str(error)) from error
    return found


def catalog_settings(folder: Path) -> dict[str, str]:
    """Return the settings of the catalog alone."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": str(folder),
    }
