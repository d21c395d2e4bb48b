"""The value of `--lake`: its kinds, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.errors import InvalidInput, LakeFailed
from restow.pipeline.address import DELTA, DELTA_LOG, ICEBERG, PARQUET, lake_address, parquet_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("samples", PARQUET, "samples"),
        ("/", PARQUET, "/"),
        ("s3a://bucket/samples/", PARQUET, "s3a://bucket/samples"),
        ("file:/lake", PARQUET, "file:/lake"),
        ("iceberg:lakes.kafka", ICEBERG, "lakes.kafka"),
        ("iceberg:lakes.team-a.kafka", ICEBERG, "lakes.team-a.kafka"),
        ("delta:lake/", DELTA, "lake"),
        ("delta:s3a://bucket/lake", DELTA, "s3a://bucket/lake"),
    ],
)
def test_lake_address_has_a_kind_and_a_place(text: str, kind: str, place: str) -> None:
    address = lake_address(text)
    assert (address.kind, address.place) == (kind, place)
    assert lake_address(address.text) == address


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no place of a lake: it is a folder"),
        ("hudi:lakes.kafka", "'hudi:lakes.kafka' is no place of a lake: it is a folder, an address such as"),
        ("Iceberg:lakes.kafka", "no place of a lake"),
        ("iceberg:lakes", "names no database of a catalog: write iceberg:CATALOG.DATABASE"),
        ("iceberg:lakes.", "names no database"),
        ("iceberg:lakes.a`b", "names no database"),
        ("iceberg:/lakes", "names no database"),
        ("delta:", "names no folder: write delta:PATH"),
    ],
)
def test_lake_address_refuses_what_is_no_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as complaint:
        lake_address(text)
    assert said in str(complaint.value)


def test_other_kinds_are_refused_without_spark(tmp_path: Path) -> None:
    assert parquet_folder(str(tmp_path)) == tmp_path
    for lake in ("iceberg:lakes.kafka", f"delta:{tmp_path}"):
        with pytest.raises(LakeFailed, match=r"not read without Spark: .*`restow lake copy --lake"):
            parquet_folder(lake)
    (tmp_path / "rates" / "v1" / DELTA_LOG).mkdir(parents=True)
    with pytest.raises(LakeFailed, match="rates is a Delta table, not a folder of files: --lake delta:"):
        parquet_folder(str(tmp_path))
