"""Answers of a small cluster, and readers for a lake that was written without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from restow.pipeline.names import value_of
from restow.pipeline.sampling.questions import Gap, Part
from restow.pipeline.sampling.shares import Share

if TYPE_CHECKING:
    from pathlib import Path

NOON_MS = 1_725_278_400_000


def answers(at_ms: int, cluster: str = "c") -> list[tuple[Share, list[Part | Gap]]]:
    """Return the answers of two brokers; the second does not describe its log dirs."""
    one = Share(cluster=cluster, broker=1, rack="a")
    two = Share(cluster=cluster, broker=2)
    replicas = Part(
        table="replicas",
        at_ms=at_ms,
        columns={
            "log_dir": ["/d", "/d"],
            "topic": ["t", "t"],
            "topic_id": ["x", None],
            "partition": [0, 1],
            "size": [at_ms % 1000, 7],
            "offset_lag": [0, 0],
            "is_future": [False, True],
        },
    )
    disks = Part(
        table="disks",
        at_ms=at_ms,
        columns={"log_dir": ["/d"], "total": [10], "usable": [None], "error": [None]},
    )
    offsets = Part(
        table="offsets",
        at_ms=at_ms,
        columns={"topic": ["t"], "partition": [0], "leader_epoch": [None], "earliest": [0], "latest": [5]},
    )
    assignment = Part(
        table="assignment",
        at_ms=at_ms,
        columns={
            "topic": ["t", "t"],
            "topic_id": ["x", "x"],
            "partition": [0, 1],
            "leader": [1, -1],
            "replicas": [(1, 2), (2,)],
            "isr": [(1,), ()],
        },
    )
    groups = Part(table="groups", at_ms=at_ms, columns=_groups())
    gap = Gap(tables=("disks", "replicas"), at_ms=at_ms + 1, broker=2, reason="asleep")
    return [(one, [disks, replicas, offsets, groups, assignment]), (two, [gap])]


def _groups() -> dict[str, list[object]]:
    return {
        "group": ["g", "g"],
        "state": ["Stable", "Stable"],
        "assignor": ["range", None],
        "member": ["m", None],
        "client": ["x", None],
        "rack": [None, None],
        "subscription": [("t", "u"), None],
        "topic": ["t", "t"],
        "partition": [0, 1],
        "committed": [3, None],
    }


def rows_in(lake: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, read from its files and folders."""
    found = []
    for path in sorted((lake / name / "v1").glob("cluster=*/day=*/*.parquet")):
        cluster = value_of(path.parent.parent.name.partition("=")[2])
        day = path.parent.name.partition("=")[2]
        for row in pq.ParquetFile(path).read().to_pylist():
            assert row["at"].date().isoformat() == day
            found.append({"cluster": cluster, **row})
    return found


def left_over(lake: Path) -> list[str]:
    """Return all files in a lake that belong neither to a table nor to the collector's checkpoint."""
    known = {"collector.json", "lock"}
    files = (each for each in lake.rglob("*") if each.is_file())
    return [
        str(each)
        for each in files
        if each.name not in known and not each.match("*/v1/cluster=*/day=*/sample-*")
    ] + [str(each) for each in lake.rglob("_staging")]
