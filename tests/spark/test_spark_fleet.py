"""Plans for a fleet, from tables of the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.pipeline.jobs.fleet import TABLE, fleet
from restow.pipeline.jobs.model import TABLE as MODEL
from restow.pipeline.planning import FleetRequest
from restow.plan.files.text import loads
from restow.plan.request.request import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Made = Callable[..., DataFrame]

pytestmark = pytest.mark.spark

ASKED = FleetRequest(request=PlanRequest(balance=True, bands={"leaders": None}), seconds=120)


def cluster(
    name: str, homes: list[list[int]], brokers: int = 4, at: int = 0
) -> dict[str, list[dict[str, Any]]]:
    """Return rows of a cluster: partitions of t of 1,000 bytes, log dirs of 100,000 bytes."""
    about = {"cluster": name, "at": at}
    return {
        "assignment": [
            about | {"partition": number, "leader": on[0], "replicas": on, "isr": on}
            for number, on in enumerate(homes)
        ],
        "replicas": [
            about | {"partition": number, "broker": broker, "size": 1000}
            for number, on in enumerate(homes)
            for broker in on
        ],
        "disks": [
            about | {"broker": broker, "total": 100_000, "usable": 90_000} for broker in range(1, brokers + 1)
        ],
    }


def planned(
    made: Made, *clusters: dict[str, list[dict[str, Any]]], model: DataFrame | None = None
) -> list[Any]:
    tables = [
        made(name, [row for each in clusters for row in each[name]])
        for name in ("assignment", "replicas", "disks")
    ]
    frame = fleet(*tables, model=model, asked=ASKED)
    assert frame.schema.fieldNames() == TABLE.schema.fieldNames()
    return frame.collect()


def test_fleet_plans_every_cluster_and_lists_the_worst_first(rows_of: Made) -> None:
    even = cluster("even", [[1, 2], [3, 4], [2, 1], [4, 3]])
    skewed = cluster("skewed", [[1, 2]] * 8)
    rows = planned(rows_of, even, skewed)
    assert [row["cluster"] for row in rows] == ["skewed", "even"]
    assert [(row["error"], row["brokers"], row["replicas"]) for row in rows] == [(None, 4, 16), (None, 4, 8)]
    assert rows[0]["urgency"] > rows[1]["urgency"] == 0.0
    assert rows[1]["moves"] == 0
    plan = loads(rows[0]["plan"])
    assert plan.cluster_id == "skewed"
    assert (plan.bytes_to_copy, plan.bound_bytes) == (rows[0]["copied"], rows[0]["bound"])
    assert rows[0]["disk_before"] == 2.0
    assert rows[0]["disk_after"] < 1.3


def test_fleet_uses_only_the_newest_rows(rows_of: Made) -> None:
    old = cluster("c", [[1, 2]] * 8, at=0)
    new = cluster("c", [[1, 2], [3, 4], [2, 1], [4, 3]], at=300)
    (row,) = planned(rows_of, old, new)
    assert (row["partitions"], row["moves"], row["size"]) == (4, 0, 8000)


def test_fleet_keeps_topics_of_answers_some_seconds_apart(rows_of: Made) -> None:
    first, second = cluster("c", [[1, 2]] * 3, at=0), cluster("c", [[3, 4]] * 2, at=7)
    for row in second["assignment"] + second["replicas"]:
        row["topic"] = "other"
    (row,) = planned(rows_of, first, second)
    assert row["partitions"] == 5


def test_fleet_gives_the_reason_for_a_cluster_without_partitions_or_disks(rows_of: Made) -> None:
    nothing, nowhere = cluster("nothing", []), cluster("nowhere", [[1, 2]])
    nowhere["disks"] = []
    found = {row["cluster"]: row["error"] for row in planned(rows_of, nothing, nowhere, cluster("c", [[1]]))}
    assert "no partitions" in found["nothing"]
    assert "no brokers" in found["nowhere"]
    assert found["c"] is None


def test_fleet_plans_with_the_loads_of_the_model(rows_of: Made, spark: SparkSession) -> None:
    homes = [[1, 2], [2, 3], [3, 4], [4, 1]] * 4
    known = {"samples": 5, "hours": 1, "confidence": 1.0, "bytes_out_mean": 100.0}
    rows = [
        {"cluster": "c", "topic": "t", "partition": n, **known, "bytes_in_mean": 100.0 if n % 4 else 900.0}
        for n in range(15)
    ]
    names = MODEL.schema.fieldNames()
    model = spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], MODEL.schema)
    (row,) = planned(rows_of, cluster("c", homes), model=model)
    assert row["without_load"] == 1
    assert row["bytes_in_before"] > 1.5
    assert row["bytes_in_after"] < row["bytes_in_before"]
    assert row["disk_before"] == 1.0
