"""The files of a declarative pipeline: what is written, and what is refused."""

from __future__ import annotations

import ast
import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import yaml

from restow.cli import run
from restow.pipeline import declaring

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaring, "spark_release", lambda: "4.1")


def test_declare_writes_a_spec_and_definitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "it's tables"
    asked = ["pipeline", "declare", str(folder), "--lake", "it's samples", "--window", "15m"]
    asked += ["--fill", "0.8", "--limit", "bytes_in=1MB/s", "--database", "kafka"]
    asked += ["--conf", "spark.sql.a=b: c", "--conf", "spark.sql.warehouse.dir=/there"]
    asked += ["--conf", "spark.driver.memory=2g", "--json"]
    assert run(asked) == 0
    told = json.loads(capsys.readouterr().out)["run"]
    at_start = {"spark.sql.warehouse.dir=/there", "spark.driver.memory=2g"}
    assert {given for word, given in pairwise(told) if word == "--conf"} == at_start
    assert told[-3:] == ["run", "--spec", str(folder / "spark-pipeline.yml")]
    spec = yaml.safe_load((folder / "spark-pipeline.yml").read_text())
    assert spec["storage"] == (folder / "storage").as_uri()
    assert spec["database"] == "kafka"
    assert spec["configuration"]["spark.sql.a"] == "b: c"
    assert spec["configuration"]["spark.sql.session.timeZone"] == "UTC"
    assert not {setting.partition("=")[0] for setting in at_start} & spec["configuration"].keys()
    (file,) = folder.glob(spec["libraries"][0]["glob"]["include"] + "/*.py")
    *_, call = ast.parse(file.read_text()).body
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    spark, about = call.value.args
    assert isinstance(spark, ast.Name)
    assert isinstance(about, ast.Call)
    given = {each.arg: ast.literal_eval(each.value) for each in about.keywords}
    assert given == {
        "lake": str(tmp_path.cwd() / "it's samples"),
        "window_s": 900,
        "fill": 0.8,
        "limit": {"bytes_in": 1e6},
    }
    assert run(asked) == 0


def test_declare_refuses_an_older_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(declaring, "spark_release", lambda: "4.0")
    assert run(["pipeline", "declare", str(tmp_path / "tables"), "--lake", "samples"]) == 1
    assert "Spark 4.0 has no declarative pipelines" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_declare_leaves_the_pipelines_of_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spark-pipeline.yaml").write_text("name: theirs\n")
    assert run(["pipeline", "declare", str(tmp_path), "--lake", "samples"]) == 2
    assert "not made by this command" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["spark-pipeline.yaml"]
