"""The record of the files that rates are made of, and what differs from it."""

from __future__ import annotations

from datetime import date

import pytest

from restow.pipeline.keeping.record import (
    RatesRecord,
    begin_us,
    by_folder,
    changes,
    cluster_of,
    day_of,
    record_from,
)

ONE, TWO = "cluster=a%2Fb/day=2026-11-01", "cluster=c/day=2026-11-02"


def test_by_folder_leaves_out_what_readers_do_not_see() -> None:
    paths = [f"{TWO}/y.parquet", f"{TWO}/x.parquet", f"_staging/1/{ONE}/z.parquet", f"{ONE}/.w.parquet"]
    assert by_folder([*paths, "cluster=c/old.parquet"]) == {TWO: ("x.parquet", "y.parquet")}


def test_folder_tells_its_cluster_and_day() -> None:
    assert (cluster_of(ONE), day_of(ONE)) == ("a/b", date(2026, 11, 1))
    assert begin_us(date(1970, 1, 2)) == 86_400_000_000


def test_changes_name_new_files_and_folders_that_lost_some() -> None:
    before = {ONE: ("x", "y"), TWO: ("z",)}
    assert not changes(before, before).folders
    found = changes(before, {ONE: ("w", "x")})
    assert found.added == {ONE: ("w",)}
    assert found.lost == {ONE, TWO}
    assert changes({}, before).added == before


def test_record_reads_what_it_wrote() -> None:
    record = RatesRecord(
        name="n",
        window_s=300,
        gap_s=7200.0,
        files={"replicas": {ONE: ("x", "y")}},
        answers={"replicas": {("a/b", 1): 7, ("a/b", 2): 8}, "assignment": {("a/b", None): 9}},
    )
    assert record_from(record.text()) == record


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"version": 1}', '{"version": 2, "name": "n"}'])
def test_record_that_cannot_be_read_is_none(text: str | None) -> None:
    assert record_from(text) is None
