"""Where a lake lies: the value of `--lake`.

samples, s3a://bucket/samples     Parquet folders
iceberg:CATALOG.DATABASE          Iceberg tables in a catalog of the Spark session
delta:PATH                        Delta tables in a folder, or at any address that Spark reads
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from restow.errors import InvalidInput, LakeFailed
from restow.pipeline.schemas import NAMES, VERSION

PARQUET, ICEBERG, DELTA = "parquet", "iceberg", "delta"
KINDS = (PARQUET, ICEBERG, DELTA)
DELTA_LOG = "_delta_log"
"""The folder that every Delta table has, beside its files."""

_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!/)")
_NAME = r"[A-Za-z0-9_-]+"
_DATABASE = re.compile(rf"({_NAME})\.({_NAME}(?:\.{_NAME})*)")
_FORMS = "a folder, an address such as s3a://bucket/samples, iceberg:CATALOG.DATABASE or delta:PATH"


@dataclass(frozen=True, slots=True)
class LakeAddress:
    """The kind of a lake, and its folder or address, or the catalog and database."""

    kind: str
    place: str

    @property
    def text(self) -> str:
        return self.place if self.kind == PARQUET else f"{self.kind}:{self.place}"

    @property
    def catalog(self) -> str:
        """Return the name of the catalog of an Iceberg lake."""
        return self.place.partition(".")[0]


def lake_address(text: str) -> LakeAddress:
    """Parse the value of `--lake`."""
    kind, colon, rest = text.partition(":")
    if colon and kind == ICEBERG:
        if not _DATABASE.fullmatch(rest):
            raise InvalidInput(
                f"--lake {text!r} names no database of a catalog: write iceberg:CATALOG.DATABASE"
            )
        return LakeAddress(ICEBERG, rest)
    if colon and kind == DELTA:
        if not rest:
            raise InvalidInput(f"--lake {text!r} names no folder: write delta:PATH")
        return LakeAddress(DELTA, rest.rstrip("/") or "/")
    if not text or _PREFIX.match(text):
        raise InvalidInput(f"--lake {text!r} is no place of a lake: it is {_FORMS}")
    return LakeAddress(PARQUET, text.rstrip("/") or "/")


def parquet_folder(lake: str) -> Path:
    """Return the folder of a lake that is read and written without Spark; refuse other kinds."""
    address = lake_address(lake)
    folder = Path(address.place)
    if address.kind != PARQUET:
        raise LakeFailed(
            f"{lake!r} is not read without Spark: copy it into a folder with "
            f"`restow lake copy --lake {lake} --to FOLDER`, and give that"
        )
    for name in NAMES:
        if (folder / name / f"v{VERSION}" / DELTA_LOG).is_dir():
            raise LakeFailed(f"{folder / name} is a Delta table, not a folder of files: --lake delta:{lake}")
    return folder
