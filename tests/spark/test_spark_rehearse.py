"""Plans in many variants, rehearsed by Spark's executors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from restow.cli import run
from restow.model.load import BYTES_IN, BYTES_OUT, LoadModel, Resource
from restow.model.load_text import dumps as dumps_load
from restow.plan.files.text import dumps
from restow.plan.flow.constants import Calibration
from restow.plan.flow.loads import ClientLoads
from restow.plan.pin import Target, plan_from_targets
from restow.rehearse.variants import PlanToRehearse, VariantRehearsals, variants_of
from restow.snapshot import write_snapshot
from tests.unit.plan.clusters import snapshot as snapshot_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from restow.model import Plan, Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("same_session")]

MB = 10**6
START_MS = 1_767_571_200_000


def cluster(name: str) -> tuple[Snapshot, Plan]:
    snapshot = snapshot_of({"t": [(number % 3, 3) for number in range(6)]}, size=100 * MB, cluster_id=name)
    targets = [
        Target(partition=each, replicas=(partition.replicas[0], 4 + each.partition % 2))
        for each, partition in snapshot.all_partitions()
    ]
    return snapshot, plan_from_targets(snapshot, targets, created_ms=1)


def load_of(snapshot: Snapshot) -> LoadModel:
    """Return a load that is ten times as high in the second hour of the week as in the others."""
    many = len(snapshot.names)
    busy = np.ones(168)
    busy[1] = 10.0
    read = Resource(leading=np.full(many, 5.0 * MB), following=np.zeros(many), hours={"t": busy})
    written = Resource(leading=np.full(many, 1.0), following=np.full(many, 1.0))
    return LoadModel(
        cluster_id=snapshot.cluster_id,
        made_ms=0,
        partitions=snapshot.names,
        resources={BYTES_IN: written, BYTES_OUT: read},
    )


def test_spark_rehearses_every_variant_as_one_process_does(spark: SparkSession) -> None:
    from restow.pipeline.jobs.rehearse import TABLE, rehearsals

    cases = [
        PlanToRehearse(plan=plan, snapshot=snapshot, loads=ClientLoads(), known=Calibration(), flags={})
        for snapshot, plan in map(cluster, ("one", "two"))
    ]
    variants = variants_of(("10MB/s", "none"), (START_MS,), (), 3)
    found = rehearsals(spark, cases, variants)
    assert found.schema.fieldNames() == TABLE.schema.fieldNames()
    rows = [row.asDict() for row in found.collect()]
    expected = [VariantRehearsals(case).row(variant) for case in cases for variant in variants]
    assert sorted(rows, key=str) == sorted(expected, key=str)


def test_frontier_has_no_variant_that_another_beats_in_both(spark: SparkSession) -> None:
    from restow.pipeline.jobs.rehearse import TABLE, by_variant

    def row(throttle: str, seconds: float, impact: float, seed: int = 0, **more: Any) -> tuple[Any, ...]:
        given = {"cluster": "c", "plan": "p", "start_ms": START_MS, "what_if": "", "leaders_moved": 0}
        given |= {"throttle": throttle, "seconds": seconds, "impact": impact, "seed": seed, "problems": []}
        return tuple((given | more).get(name) for name in TABLE.schema.fieldNames())

    rows = [
        *(row("slow", 300.0 + seed, 1.0, seed) for seed in range(11)),
        row("fast", 100.0, 9.0),
        row("beaten", 200.0, 9.5),
        row("full", 50.0, 0.5, problems=["a log dir would be too full"]),
        row("endless", float("inf"), 0.1, problems=["it would never end"]),
        row("beaten", 200.0, 9.5, what_if="broker 3 dies at 30%"),
    ]
    found = {
        (each["throttle"], each["what_if"]): each
        for each in by_variant(spark.createDataFrame(rows, TABLE.schema)).collect()
    }
    best = {key for key, each in found.items() if each["frontier"]}
    assert best == {("slow", ""), ("fast", ""), ("beaten", "broker 3 dies at 30%")}
    slow = found["slow", ""]
    assert (slow["p10"], slow["p50"], slow["p90"], slow["rehearsals"]) == (301.0, 305.0, 309.0, 11)
    assert found["full", ""]["with_problems"] == 1


def test_command_compares_the_plans_of_two_clusters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    folders = {name: tmp_path / name for name in ("plans", "snapshots", "loads")}
    for folder in folders.values():
        folder.mkdir()
    for name in ("one", "two"):
        snapshot, plan = cluster(name)
        (folders["plans"] / f"{name}.json").write_text(dumps(plan))
        write_snapshot(snapshot, folders["snapshots"] / f"{name}.json")
        (folders["loads"] / f"{name}.json").write_text(dumps_load(load_of(snapshot)))
    starts = "2026-01-05T00:00+00:00,2026-01-05T01:00+00:00"
    out, html = str(tmp_path / "table"), tmp_path / "sweep.html"
    command = ["pipeline", "rehearse", str(folders["plans"]), "--snapshot", str(folders["snapshots"])]
    command += ["--load", str(folders["loads"]), "--throttles", "20MB/s,none", "--starts", starts]
    command += ["--seeds", "3", "--journal", str(tmp_path), "--out", out, "--html", str(html), "--json"]
    assert run(command) == 0
    variants = json.loads(capsys.readouterr().out)["variants"]
    assert len(variants) == spark.read.parquet(out).count() == 2 * 2 * 2
    for name in ("one", "two"):
        best = [each for each in variants if each["cluster"] == name and each["frontier"]]
        assert {each["throttle"] for each in best} == {"20MB/s", "none"}
        assert {each["start"] for each in best} == {"2026-01-05T00:00:00"}  # the quiet hour
        assert all(each["p10"] <= each["p50"] <= each["p90"] for each in best)
    assert html.read_text().count("<circle") == len(variants)


def test_command_refuses_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snapshot, plan), (other, _) = cluster("one"), cluster("two")
    (tmp_path / "plan.json").write_text(dumps(plan))
    write_snapshot(snapshot, tmp_path / "now.json")
    write_snapshot(other, tmp_path / "other.json")
    (tmp_path / "empty").mkdir()

    def complaint(*more: str, snapshot: str = "now.json") -> str:
        command = [
            "pipeline",
            "rehearse",
            str(tmp_path / "plan.json"),
            "--snapshot",
            str(tmp_path / snapshot),
        ]
        assert run([*command, "--journal", str(tmp_path), *more]) == 2
        return capsys.readouterr().err

    assert "the plan is for cluster one" in complaint(snapshot="other.json")
    assert "there are no files" in complaint(snapshot="empty")
    assert "no broker 77" in complaint("--what-if", "broker 77 dies at 30%")
    assert "empty name" in complaint("--throttles", "10MB/s,,none")
    assert "is no time" in complaint("--starts", "soon")
    assert "at most 1,000,000" in complaint("--starts", "every hour", "--seeds", "10000")
