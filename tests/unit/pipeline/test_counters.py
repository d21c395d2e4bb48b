"""Growth and rates of counters, from readings in Arrow tables, without Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from restow.pipeline.jobs.counters import COMMIT, END, SIZE, combined, summed
from restow.pipeline.jobs.side_by_side import rates_of

SECOND = 1_000_000
FIELDS = pa.schema(
    {
        "cluster": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "kind": pa.int32(),
        "name": pa.string(),
        "at_us": pa.int64(),
        "value": pa.int64(),
        "guard": pa.int64(),
        "floor": pa.int64(),
        "epoch": pa.int32(),
        "followers": pa.int32(),
    }
)
USUAL = {"cluster": "c", "topic": "t", "partition": 0, "kind": SIZE, "name": "", "guard": 0, "followers": 2}


def readings(*rows: dict[str, Any]) -> pa.Table:
    """Return a table; `at` is in seconds."""
    whole = [USUAL | {"at_us": row["at"] * SECOND} | row for row in rows]
    return pa.Table.from_pylist([{name: row.get(name) for name in FIELDS.names} for row in whole], FIELDS)


def growth(*rows: dict[str, Any]) -> list[tuple[int, float | None]]:
    """Return seconds that count and growth per second, of windows of a minute."""
    sums = summed(readings(*rows), gap_s=100, window_s=60)
    return [
        (0, None) if np.isnan(seconds) else (int(seconds), float(speed))
        for seconds, speed in zip(sums.seconds, sums.speed, strict=True)
    ]


def sizes(*values: int, **others: Any) -> list[dict[str, Any]]:
    return [{"at": 60 * number, "value": value, **others} for number, value in enumerate(values)]


def test_growth_belongs_to_the_window_in_which_an_interval_ends() -> None:
    assert growth(*sizes(0, 600, 600, 1800)) == [(0, None), (60, 10.0), (60, 0.0), (60, 20.0)]
    within = [{"at": at, "value": 10 * at} for at in (0, 20, 40, 60)]
    assert growth(*within) == [(40, 10.0), (20, 10.0)]


@pytest.mark.parametrize("order", [1, -1])
def test_repeated_and_unsorted_readings_count_once(order: int) -> None:
    rows = sizes(0, 600, 1200)
    assert growth(*[*rows, *rows][::order]) == [(0, None), (60, 10.0), (60, 10.0)]
    assert summed(readings(*rows, *rows), 100, 60).samples.tolist() == [1, 1, 1]


def test_a_fall_and_its_neighbours_do_not_count() -> None:
    told = growth(*sizes(0, 60, 120, 30, 90, 150))
    assert told == [(0, None), (60, 1.0), (0, None), (0, None), (0, None), (60, 1.0)]


def test_a_fall_over_a_gap_leaves_its_neighbours_alone() -> None:
    rows = [{"at": at, "value": value} for at, value in ((0, 0), (60, 60), (300, 5), (360, 65))]
    assert growth(*rows) == [(0, None), (60, 1.0), (0, None), (60, 1.0)]


def test_long_interval_does_not_count() -> None:
    assert growth({"at": 0, "value": 0}, {"at": 101, "value": 9}) == [(0, None), (0, None)]
    assert growth({"at": 0, "value": 0}, {"at": 100, "value": 100}) == [(0, None), (100, 1.0)]


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ({"guard": 1}, {"guard": 2}, False),
        ({"floor": 5}, {"floor": 4}, False),
        ({"epoch": 5}, {"epoch": 4}, False),
        ({"floor": 4}, {"floor": 5}, True),
        ({"floor": None}, {"floor": 5}, True),
        ({"floor": 5}, {"floor": None}, True),
    ],
)
def test_recreated_object_does_not_count(before: dict[str, Any], after: dict[str, Any], counts: bool) -> None:
    told = growth({"at": 0, "value": 0, **before}, {"at": 60, "value": 60, **after})
    assert told == [(0, None), (60, 1.0) if counts else (0, None)]


def test_series_of_other_names_are_kept_apart() -> None:
    others: list[dict[str, Any]] = [
        {"cluster": "d"},
        {"topic": "u"},
        {"partition": 1},
        {"kind": END},
        {"kind": COMMIT, "name": "g"},
        {"kind": COMMIT, "name": "h"},
    ]
    rows = [each for other in others for each in sizes(0, 60, **other)]
    assert growth(*rows) == [(0, None), (60, 1.0)] * len(others)


def test_bytes_come_from_messages_where_records_were_deleted() -> None:
    ends = [
        {"at": 0, "kind": END, "value": 100, "floor": 0, "followers": None},
        {"at": 60, "kind": END, "value": 160, "floor": 60, "followers": None},
    ]
    made = rates_of(readings(*sizes(1000, 500), *ends), 100, 60)
    assert made["messages_in"].to_pylist() == [None, 1.0]
    assert made["bytes_in"].to_pylist() == [None, 5.0], "500 bytes in 100 messages, one a second"
    assert made["bytes_out"].to_pylist() == [None, 10.0]
    assert made["size"].to_pylist() == [1000, 500]


def test_consumers_fetch_messages_of_the_size_of_those_written_meanwhile() -> None:
    """The log has 1,000 messages of 1,000 bytes; from then on messages have 100 bytes."""
    ends = [{"at": at, "kind": END, "value": 1000 + at, "floor": 0, "followers": None} for at in (0, 60, 120)]
    commits = [{**each, "kind": COMMIT, "name": "g"} for each in ends]
    made = rates_of(readings(*sizes(1_000_000, 1_006_000, 1_012_000), *ends, *commits), 100, 60)
    assert made["bytes_in"].to_pylist() == [None, 100.0, 100.0]
    assert made["bytes_consumed"].to_pylist() == [None, 100.0, 100.0]


def test_consumers_fetch_nothing_before_the_first_and_after_the_last_commit() -> None:
    ends = [{**each, "kind": END, "floor": 0, "followers": None} for each in sizes(60, 120, 180, 240, 300)]
    commits = [
        {"at": at, "kind": COMMIT, "name": "g", "value": at, "followers": None} for at in (60, 120, 180)
    ]
    made = rates_of(readings(*sizes(60, 120, 180, 240, 300), *ends, *commits), 100, 60)
    assert made["bytes_consumed"].to_pylist() == [None, None, 1.0, 1.0, None]
    assert made["bytes_out"].to_pylist() == [None, None, 3.0, 3.0, 2.0]
    assert made["samples"].to_pylist() == [2] * 5


def test_combinations_of_large_numbers_stay_different_and_in_order() -> None:
    large = np.array([0, 0, 2**61, 2**61], dtype=np.int64)
    small = np.array([3, 4, 3, 4], dtype=np.int64)
    key = combined(large, small, large, small)
    assert len(set(key.tolist())) == 4
    assert key.tolist() == sorted(key.tolist())
