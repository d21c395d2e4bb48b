"""The commands of the pipeline and of the lake, on a lake with every fault."""

from __future__ import annotations

import csv
import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import restow
from harness.lakes import write_faulty_lake
from restow.cli import run
from restow.errors import InvalidInput
from restow.model.load_parquet import read as read_load
from restow.pipeline.findings import read_findings
from restow.pipeline.jobs.lab import OURS
from restow.plan.files.text import loads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("same_session")]


@pytest.fixture(scope="module")
def made(same_session: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what `restow pipeline run` says it made of a lake, and the paths that it was given."""
    folder = tmp_path_factory.mktemp("pipeline")
    lake, report = str(folder / "lake"), str(folder / "report.html")
    write_faulty_lake(folder / "lake", clusters=2, topics=3, samples=12)
    out = StringIO()
    with redirect_stdout(out):
        command = ("pipeline", "run", "--lake", lake, "--load", str(folder / "loads"), "--report", report)
        assert run([*command, "--json"]) == 0
    return json.loads(out.getvalue()) | {"lake": lake, "report": report}


@pytest.fixture
def lake(made: dict[str, Any]) -> str:
    """Return a lake with the results of `restow pipeline run`."""
    return str(made["lake"])


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run(list(arguments)) == 2
    return capsys.readouterr().err


def test_pipeline_makes_plans_and_a_report_from_samples(
    made: dict[str, Any], lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made["made"] == ["rates", "model", "skew", "forecast", "alerts"]
    assert {each["table"] for each in made["checks"]} >= {"offsets", *made["made"]}
    assert not any(each["dropped"] for each in made["checks"])
    assert made["alerts"]
    assert made["skew"][0]["share"] >= made["skew"][-1]["share"] > 0
    first = read_load(Path(made["loads"][0]))
    assert len(first.partitions) > 5
    assert first.resources["bytes_in"].leading.max() > 0
    page = Path(made["report"]).read_text()
    assert page.count("<svg") > 6
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "<script" not in page

    fleet = told(capsys, "pipeline", "fleet", "--lake", lake, "--plans", str(tmp_path / "plans"))["clusters"]
    assert [each["urgency"] for each in fleet] == sorted((each["urgency"] for each in fleet), reverse=True)
    plans = [loads(path.read_text()) for path in (tmp_path / "plans").iterdir()]
    assert {plan.cluster_id for plan in plans} <= {each["cluster"] for each in fleet}
    assert all(each["error"] is None for each in fleet)

    out = tmp_path / "lab"
    html = tmp_path / "lab.html"
    saved = ("--out", str(out), "--format", "csv", "--html", str(html))
    groups = told(capsys, "pipeline", "lab", "--lake", lake, *saved)["groups"]
    written = [row for path in out.glob("*.csv") for row in csv.DictReader(path.read_text().splitlines())]
    assert len(written) >= len(groups) > 0
    assert {row["assignor"] for row in written} == set(OURS)
    assert all(row["error"] for row in written), "the faulty lake has no sound group"
    assert "No assignor could assign any group" in html.read_text()


def test_lab_makes_up_groups_without_a_lake(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    html = tmp_path / "lab.html"
    groups = told(capsys, "pipeline", "lab", "--generate", "3", "--html", str(html), "--rows", "100")[
        "groups"
    ]
    assert sorted({each["group"] for each in groups}) == ["group-00000", "group-00001", "group-00002"]
    assert {each["assignor"] for each in groups} == set(OURS)
    assert all(each["error"] is None and each["rounds"] == 8 for each in groups)
    assert html.read_text().count("<svg") == 8


def test_pipeline_function_makes_what_the_command_makes(
    spark: SparkSession, made: dict[str, Any], lake: str, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    done = restow.pipeline(lake, spark=spark, load=tmp_path / "function", report=report)
    assert list(done.tables) == made["made"]
    assert done.report == str(report)
    assert "<svg" in report.read_text()
    assert len(done.loads) == len(made["loads"]) == 2
    for mine, other in zip(sorted(done.loads), sorted(made["loads"]), strict=True):
        ours, theirs = read_load(Path(mine)), read_load(Path(other))
        assert ours.cluster_id == theirs.cluster_id
        assert ours.partitions == theirs.partitions
        assert ours.resources["bytes_in"].leading.tolist() == theirs.resources["bytes_in"].leading.tolist()


@pytest.mark.full
def test_pipeline_function_covers_the_clusters_that_are_named(
    spark: SparkSession, made: dict[str, Any], lake: str, tmp_path: Path
) -> None:
    name = read_load(Path(made["loads"][0])).cluster_id
    one = restow.pipeline(lake, spark=spark, cluster=[name], load=tmp_path / "one")
    assert len(made["loads"]) == 2
    assert [read_load(Path(each)).cluster_id for each in one.loads] == [name]


def test_pipeline_function_refuses_an_unknown_statistic(spark: SparkSession, lake: str) -> None:
    with pytest.raises(InvalidInput, match="'median' cannot be: choose one of mean, p95, peak"):
        restow.pipeline(lake, spark=spark, statistic="median")


def test_skew_and_forecast_print_their_tables(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    of_dirs = told(capsys, "pipeline", "skew", "--lake", lake, "--of", "log_dir", "--measure", "size")["skew"]
    assert {(row["dimension"], row["measure"]) for row in of_dirs} == {("log_dir", "size")}
    limits = ("--fill", "0.5", "--limit", "bytes_in=1kB")
    rows = told(capsys, "pipeline", "forecast", "--lake", lake, "--rows", "200", *limits)["forecast"]
    assert {row["measure"] for row in rows} == {"disk", "bytes_in"}
    assert {row["limit"] for row in rows if row["measure"] == "bytes_in"} == {1000.0}


def test_pages_read_the_same_forecast_and_load_without_spark(
    made: dict[str, Any], lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = told(capsys, "pipeline", "forecast", "--lake", lake, "--rows", "1000")["forecast"]
    names = ("measure", "broker", "log_dir", "now", "limit", "growth", "why")
    for load in map(read_load, map(Path, made["loads"])):
        found = read_findings(lake, load.cluster_id)
        of_command = [each for each in rows if each["cluster"] == load.cluster_id]
        assert of_command
        assert [[each[name] for name in names] for each in found.forecast] == [
            [each[name] for name in names] for each in of_command
        ]
        assert found.load is not None
        of_lake = dict(zip(found.load.partitions, found.load.resources["bytes_in"].leading, strict=True))
        assert of_lake == dict(zip(load.partitions, load.resources["bytes_in"].leading, strict=True))
        assert any(value is not None for value in found.week["bytes_in"])


def test_commands_draw_tables(lake: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for arguments, words in (
        (("pipeline", "skew"), "× share"),
        (("pipeline", "forecast"), "growth a day"),
        (("lake", "describe"), "assignment"),
    ):
        assert run([*arguments, "--lake", lake]) == 0
        assert words in capsys.readouterr().out


def test_lake_commands_describe_and_compact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_faulty_lake(tmp_path, clusters=1, topics=2, samples=10)
    before = {
        row["table"]: row for row in told(capsys, "lake", "describe", "--lake", str(tmp_path))["tables"]
    }
    fewer = told(capsys, "lake", "compact", "--lake", str(tmp_path))["fewer_files"]
    after = {row["table"]: row for row in told(capsys, "lake", "describe", "--lake", str(tmp_path))["tables"]}
    assert set(before) == set(fewer) == {"replicas", "offsets", "assignment", "groups", "disks"}
    assert max(fewer.values()) > 0
    for name, row in after.items():
        assert before[name]["files"] - row["files"] == fewer[name]
        assert row["rows"] <= before[name]["rows"]


def test_commands_use_only_the_given_clusters_and_times(
    lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = {row["cluster"] for row in told(capsys, "lake", "describe", "--lake", lake)["tables"]}
    one = min(clusters)
    rows = told(capsys, "pipeline", "skew", "--lake", lake, "--cluster", one, "--rows", "500")["skew"]
    assert {row["cluster"] for row in rows} == {one}
    told(capsys, "pipeline", "run", "--lake", lake, "--cluster", one)
    kept = [
        row for row in told(capsys, "lake", "describe", "--lake", lake)["tables"] if row["table"] == "skew"
    ]
    assert {row["cluster"] for row in kept} == clusters, "what was made of others stays"
    wrong = complaint(capsys, "pipeline", "run", "--lake", lake, "--until", "2020-01-01")
    assert "none of these clusters and times" in wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pipeline", "run"), "no samples of assignment yet: `restow collect`"),
        (("pipeline", "lab"), "no samples of groups yet"),
        (("lake", "describe"), "there is no lake at"),
        (("pipeline", "lab", "--assignors", "nobody"), "no assignor is called 'nobody'"),
        (("pipeline", "run", "--window", "soon"), "--window: 'soon' is not a duration"),
        (("pipeline", "run", "--limit", "cpu=3"), "--limit: 'cpu=3' is not like"),
        (("pipeline", "run", "--statistic", "max"), "--statistic 'max' cannot be"),
        (("pipeline", "run", "--incremental", "--since", "7d"), "leave out --cluster, --since and --until"),
        (("pipeline", "stream", "--samples-only"), "--samples-only copies from a topic: say --from-topic"),
        (("pipeline", "stream", "--from-topic", "t"), "--from-topic needs the cluster of the topic: say -b"),
        (("pipeline", "stream", "--checkpoint", "c"), "--checkpoint belongs to --from-topic"),
        (("pipeline", "skew", "--of", "moon"), "--of 'moon' cannot be"),
        (("pipeline", "fleet", "--format", "xml"), "--format 'xml' cannot be"),
        (("pipeline", "run", "--since", "2026-02-01", "--until", "2026-01-01"), "is not before --until"),
    ],
)
def test_commands_refuse_wrong_flags_and_empty_lakes(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in complaint(capsys, *arguments, "--lake", str(tmp_path / "nothing"))


def test_skew_without_a_model_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_faulty_lake(tmp_path, clusters=1, topics=1, samples=3)
    wrong = complaint(capsys, "pipeline", "skew", "--lake", str(tmp_path))
    assert "has no model of these clusters: `restow pipeline run` makes it" in wrong
