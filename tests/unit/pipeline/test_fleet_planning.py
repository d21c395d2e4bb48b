"""One cluster of a fleet, from rows of the lake to a row with its plan."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from restow.model import TopicPartition
from restow.pipeline.planning import FleetRequest, load_of, planned, snapshot_of
from restow.plan.files.text import loads
from restow.plan.request.request import PlanRequest

AT = datetime(2026, 1, 1, tzinfo=UTC)
GB = 10**9
COUNTS = FleetRequest(request=PlanRequest(balance=True, bands={"disk": 0.3, "leaders": None}), seconds=60)


def partition(number: int, *replicas: int, size: int = GB, load: float | None = None, **changes: Any) -> dict:
    names = ("bytes_in_leading", "bytes_in_following", "bytes_out_leading", "bytes_out_following")
    row = {
        "topic": "t",
        "partition": number,
        "at": AT,
        "leader": replicas[0],
        "replicas": list(replicas),
        "isr": list(replicas),
        "copies": [
            {"broker": broker, "log_dir": "/d", "size": size, "is_future": False} for broker in replicas
        ],
        "loads": None if load is None else dict.fromkeys(names, load),
    }
    return row | changes


def disk(broker: int, used: int = 0, total: int = 100 * GB, **changes: Any) -> dict[str, Any]:
    row = {"broker": broker, "rack": None, "log_dir": "/d", "total": total, "usable": total - used}
    return row | {"error": None} | changes


def answer(partitions: list[dict[str, Any]], disks: list[dict[str, Any]]) -> dict[str, Any]:
    return planned("c", pa.Table.from_pylist(partitions), pa.Table.from_pylist(disks), COUNTS)


def test_skewed_cluster_gets_a_plan_that_can_be_read_back() -> None:
    found = answer([partition(n, 0, 1) for n in range(8)], [disk(n, 8 * GB) for n in range(4)])
    assert (found["error"], found["brokers"], found["partitions"], found["replicas"]) == (None, 4, 8, 16)
    assert (found["disk_before"], found["size"], found["without_load"]) == (2.0, 16 * GB, 8)
    assert found["disk_after"] <= 1.3
    plan = loads(found["plan"])
    assert plan.cluster_id == "c"
    assert (len(plan.moves), plan.bytes_to_copy) == (found["moves"], found["copied"])
    assert found["bound"] <= found["copied"]
    assert found["urgency"] == pytest.approx(0.91), "twice the share, less the band of replicas"
    assert found["because"] == "a broker has 2.00 × its replicas"


def test_urgency_names_the_worst_problem() -> None:
    even = [partition(n, n % 4, (n + 1) % 4) for n in range(8)]
    full = answer(even, [disk(n, 88 * GB if n == 2 else 4 * GB) for n in range(4)])
    assert full["because"] == "/d of broker 2 is 88% full"
    assert full["urgency"] == pytest.approx(0.95)
    offline = answer([*even, partition(8, 0, 1, leader=-1)], [disk(n) for n in range(4)])
    assert (offline["urgency"], offline["because"]) == (1.0, "1 partitions offline")
    lacking = answer([*even, partition(8, 0, 1, isr=[0])], [disk(n) for n in range(4)])
    assert (lacking["urgency"], lacking["because"]) == (0.5, "1 partitions lack a replica")


def test_cluster_without_a_plan_gets_the_reason() -> None:
    nothing = pa.table({"at": pa.array([], pa.timestamp("us"))})
    found = planned("c", nothing, pa.Table.from_pylist([disk(0)]), FleetRequest())
    assert "knows no partitions" in found["error"]
    all_dead = answer([partition(0, 7, leader=-1, isr=[])], [disk(0)])
    assert "without a leader" in all_dead["error"]
    assert all_dead["because"] == "1 partitions offline"


def test_broker_that_did_not_answer_is_in_the_snapshot_without_log_dirs() -> None:
    silent = disk(1) | dict.fromkeys(("log_dir", "total", "usable")) | {"error": "timed out"}
    snapshot = snapshot_of("c", [partition(0, 0, 1)], [disk(0), silent])
    assert snapshot.unanswered == (1,)
    assert snapshot.broker[1].log_dirs == ()


def test_snapshot_leaves_out_partitions_behind_a_gap() -> None:
    snapshot = snapshot_of("c", [partition(0, 0), partition(2, 0)], [disk(0)])
    assert [name for name, _ in snapshot.all_partitions()] == [TopicPartition("t", 0)]


def test_load_of_counts_unknown_loads_as_zero_and_reports_them() -> None:
    rows = [partition(0, 0, load=5.0), partition(1, 0)]
    load, without = load_of(snapshot_of("c", rows, [disk(0)]), rows)
    assert load is not None
    assert load.resources["bytes_in"].leading.tolist() == [5.0, 0.0]
    assert without == 1
    alone = [partition(0, 0)]
    assert load_of(snapshot_of("c", alone, [disk(0)]), alone) == (None, 1)
