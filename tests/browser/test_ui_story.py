"""The pages in a real browser, on the embedded cluster, and once on Apache Kafka 4.3.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.cluster.threaded import ThreadedCluster
from tests.browser.served import served_pages
from tests.browser.story import StoryStage, operator_page, play
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.served import ServedPages


@pytest.fixture
def stage() -> Iterator[StoryStage]:
    """Three brokers; the third is empty."""
    with ThreadedCluster(brokers=3, racks=("a", "b", "c")) as started:
        found = StoryStage(started.bootstrap, (0, 1, 2), started.kill_broker, started.start_broker)
        found.fill()
        yield found


@pytest.fixture
def pages(stage: StoryStage, tmp_path: Path) -> Iterator[ServedPages]:
    with served_pages(tmp_path, "-b", stage.bootstrap, "--journal", str(tmp_path / "state")) as found:
        yield found


@pytest.fixture
def page(pages: ServedPages, running_browser: Any) -> Iterator[Any]:
    with operator_page(pages, running_browser) as found:
        yield found


def test_plan_is_made_rehearsed_run_changed_and_undone_in_the_browser(stage: StoryStage, page: Any) -> None:
    play(stage, page)


@pytest.mark.full
@pytest.mark.apache
def test_story_is_the_same_on_apache_kafka(tmp_path: Path, running_browser: Any) -> None:
    """Log dirs of brokers on one machine share its disk, so any fill is allowed."""
    with needs_kafka(), apache_kafka(tmp_path / "kafka", nodes=3, version=KAFKA_4) as cluster:

        def start(broker: int) -> None:
            cluster.brokers[broker].launch()
            cluster.brokers[broker].until_ready(3)

        def kill(broker: int) -> None:
            cluster.brokers[broker].kill()

        stage = StoryStage(cluster.bootstrap, (1, 2, 3), kill, start, records=300_000, unit="MB/s")
        stage.fill()
        flags = ("-b", cluster.bootstrap, "--journal", str(tmp_path / "state"))
        with served_pages(tmp_path, *flags) as pages, operator_page(pages, running_browser) as page:
            play(stage, page, plan_options={"fill": "0.99"})


def test_page_follows_the_cluster_while_it_is_away_and_when_it_is_back(stage: StoryStage, page: Any) -> None:
    stage.kill(1)
    page.wait_for_selector("#summary .tile.bad:has-text('2 of 3')")
    for broker in (0, 2):
        stage.kill(broker)
    page.wait_for_selector("text=The cluster is away")
    assert "Rack a" in page.inner_text("#brokers")
    for broker in (0, 1, 2):
        stage.start(broker)
    page.wait_for_selector("text=The cluster is away", state="detached")


def test_page_opened_while_the_cluster_is_away_has_all_parts_when_it_comes(
    stage: StoryStage, tmp_path: Path, running_browser: Any
) -> None:
    for broker in stage.brokers:
        stage.kill(broker)
    with served_pages(tmp_path, "-b", stage.bootstrap, "--journal", str(tmp_path / "state")) as pages:
        context = running_browser.new_context()
        page = pages.enter(context, until="text=The cluster is away")
        assert page.query_selector("#brokers") is None
        for broker in stage.brokers:
            stage.start(broker)
        page.wait_for_selector("#brokers:has-text('Rack a')")
        context.close()


def test_run_is_cancelled_and_resumed_in_the_browser(
    stage: StoryStage, pages: ServedPages, page: Any
) -> None:
    page.goto(f"{pages.address}/plans/new?kind=balance")
    page.click("button:has-text('Make the plan')")
    page.wait_for_selector("#approve")
    cluster_id = page.inner_text("dl.facts dd >> nth=0")
    page.fill("#approve input[name=throttle]", "2kB/s")
    page.fill("#approve input[name=cluster]", cluster_id)
    page.click("button:has-text('Run this plan')")
    page.wait_for_url("**/runs/*")
    run = page.url
    page.wait_for_selector("#run .tile b:has-text('under way')")
    page.click("section[data-when~=active] >> text=Cancel …")
    page.wait_for_selector("text=will be taken back")
    page.click("text=No, back to the run")
    page.wait_for_selector("#run .tile b:has-text('under way')")
    page.click("section[data-when~=active] >> text=Cancel …")
    page.click("button:has-text('Cancel it')")
    page.goto(run)
    page.wait_for_selector("#run .tile b:has-text('cancelled')")
    assert all(2 not in replicas for replicas in stage.replicas().values())
    page.click("section[data-when=ended] >> text=Resume …")
    page.wait_for_selector("text=are left to move")
    page.fill("input[name=throttle]", "none")
    page.click("button:has-text('Resume it')")
    page.wait_for_url(run)
    page.wait_for_selector("#run .tile.good b:has-text('done')")
    assert any(2 in replicas for replicas in stage.replicas().values())
    with page.expect_download() as report:
        page.click("text=Report")
    assert "moves arrived" in report.value.path().read_text(encoding="utf-8")


def test_files_are_uploaded_downloaded_and_compared(
    stage: StoryStage, pages: ServedPages, page: Any, tmp_path: Path
) -> None:
    moves = tmp_path / "moves.json"
    moves.write_text(
        '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]}',
        encoding="utf-8",
    )
    page.goto(f"{pages.address}/plans")
    page.set_input_files("input[type=file]", str(moves))
    page.click("button:has-text('Upload')")
    page.wait_for_selector("h2:has-text('Moves: 1')")
    saved = {}
    for name in ("Plan file", "Kafka's JSON", "Rollback"):
        with page.expect_download() as download:
            page.click(f"text={name}")
        saved[name] = tmp_path / f"{len(saved)}.json"
        download.value.save_as(saved[name])
    assert '"replicas": [2, 1]' in saved["Kafka's JSON"].read_text(encoding="utf-8")
    assert '"replicas": [0, 1]' in saved["Rollback"].read_text(encoding="utf-8")
    page.goto(f"{pages.address}/plans")
    page.set_input_files("input[type=file]", str(saved["Plan file"]))
    page.click("button:has-text('Upload')")
    page.wait_for_selector("h2:has-text('Moves: 1')")
    page.goto(f"{pages.address}/plans")
    page.select_option("select[name=second]", index=1)
    page.click("button:has-text('Compare')")
    page.wait_for_selector("text=1 partitions go the same way in both, 0 another way.")


def test_reading_works_without_scripts(pages: ServedPages, running_browser: Any) -> None:
    context = running_browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{pages.address}/")
    page.fill("input[name=token]", pages.tokens["viewer"])
    page.click("button:has-text('Enter')")
    page.wait_for_selector("text=Rack a")  # the page reloads itself until the cluster has been looked at
    for address, words in (
        ("/", "Rack a"),
        ("/topics", "orders"),
        ("/topic?name=orders", "partition"),
        ("/groups", "group"),
        ("/runs", "no run"),
    ):
        page.goto(f"{pages.address}{address}")
        assert words in page.inner_text("main")
    assert page.query_selector("text=New plan") is None
    context.close()
