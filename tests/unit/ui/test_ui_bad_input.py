"""Lakes, load models, journals and plans that are missing, damaged, too large or of another cluster.

The page says what is wrong, where, and what to do, and shows everything else.
"""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

import restow
from restow.pipeline.schemas import CLUSTER, VERSION
from restow.plan import write_plan
from restow.ui.app import application
from restow.ui.large_files import MOST_PLAN_BYTES
from restow.ui.recorded import LOAD, unpack_story
from tests.unit.execute.stage import make_stage, plan_for
from tests.unit.ui.visitor import Visitor, a_site, a_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from restow.ui.site import Site

GIGABYTE = 10**9


def looked(site: Site) -> str:
    """Look at the cluster, and return its page."""
    asyncio.run(site.watch.look())
    return Visitor(application(site)).enter().get("/").text


def a_lake(folder: Path, cluster_id: str, content: bytes) -> str:
    """Write a lake with one file."""
    home = folder / "lake" / "model" / f"v{VERSION}" / f"{CLUSTER}={cluster_id}"
    home.mkdir(parents=True)
    (home / "part.parquet").write_bytes(content)
    return str(folder / "lake")


def test_lake_that_is_missing_damaged_or_of_another_cluster_is_named(tmp_path: Path) -> None:
    damaged = a_lake(tmp_path / "damaged", "the-cluster", b"no parquet")
    foreign = a_lake(tmp_path / "foreign", "another", b"")
    for lake, words in (
        (str(tmp_path / "nowhere"), "there is no lake at"),
        (damaged, "part.parquet cannot be read"),
        (foreign, "is of other clusters (another), not of the-cluster"),
    ):
        text = looked(a_site(tmp_path, lake=lake))
        assert words in text
        assert "Rack a" in text


def test_load_model_that_is_missing_damaged_or_of_another_cluster_is_named(tmp_path: Path) -> None:
    (damaged := tmp_path / "damaged.json").write_text('{"restow_load', encoding="utf-8")
    unpack_story(str(tmp_path))
    for load, words in (
        (tmp_path / "nowhere.json", "No such file"),
        (damaged, "damaged.json"),
        (tmp_path / LOAD, "not of &#x27;the-cluster&#x27;"),
    ):
        text = looked(a_site(tmp_path, load=str(load)))
        assert words in text
        assert "Rack a" in text


def test_journals_that_cannot_be_listed_are_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("this should be a folder", encoding="utf-8")
    visitor = Visitor(application(a_site(tmp_path))).enter()
    assert f"{tmp_path}/runs" in visitor.get("/runs").text
    assert "Rack a" in visitor.get("/").text


def test_journal_of_another_cluster_is_named(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    stage.execute(plan_for(stage, [(1, 3), (1, 2), (2, 1), (2, 3)]))
    [run] = tmp_path.rglob("journal.jsonl")
    shutil.copytree(run.parent, run.parents[2] / "the-cluster" / run.parent.name)
    visitor = Visitor(application(a_site(tmp_path))).enter()
    assert "this run is of the cluster &#x27;fake&#x27;" in visitor.get("/runs").text
    assert visitor.get(f"/runs/{run.parent.name}").status == 200


def test_plan_file_of_a_gigabyte_is_refused_and_the_others_are_shown(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    large, folder = site.store.new({"title": "plan balance"})
    with (folder / "plan.json").open("wb") as file:
        file.truncate(GIGABYTE)
    small, folder = site.store.new({"title": "plan drain"})
    write_plan(restow.plan(a_snapshot(), leaders=True), folder / "plan.json")
    visitor = Visitor(application(site)).enter()
    for address in (
        f"/plans/{large}",
        f"/api/v1/plans/{large}",
        f"/plans/compare?first={large}&second={small}",
    ):
        answered = visitor.get(address)
        assert answered.status == 400
        assert f"is larger than {MOST_PLAN_BYTES // 2**20} MiB" in answered.text
    assert "Moves:" in visitor.get(f"/plans/{small}").text
    assert visitor.get("/partition?topic=orders&partition=0").status == 200


@pytest.mark.parametrize("address", ["/plans/upload", "/api/v1/plans/upload"])
def test_upload_of_a_gigabyte_is_refused_before_it_is_sent(tmp_path: Path, address: str) -> None:
    visitor = Visitor(application(a_site(tmp_path))).enter()
    headers = {"x-csrf-token": visitor.csrf, "content-length": str(GIGABYTE)}
    assert visitor.send("POST", address, [b""], headers).status == 413
