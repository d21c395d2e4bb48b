"""The whole story in a real browser: from skew to plan, rehearsal, run, throttle, pause, and undo."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from kafka import KafkaProducer

import restow
from restow.client import NewTopic
from restow.cluster.threaded import ThreadedCluster
from tests.browser.served import served_pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.served import ServedPages

SKEWED = dict.fromkeys(range(6), (0, 1))


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    """Three brokers; the third is empty."""
    with ThreadedCluster(brokers=3, racks=("a", "b", "c")) as started:
        with restow.connect(started.bootstrap) as kafka:
            topics = [
                NewTopic(name="orders", by_hand=SKEWED),
                NewTopic(name="clicks", by_hand={0: (1, 2)}),
            ]
            kafka.ask(lambda admin: admin.create_topics(topics))
        with closing(
            KafkaProducer(bootstrap_servers=started.bootstrap, acks="all", linger_ms=20)
        ) as producer:
            for number in range(1_800):
                producer.send("orders", b"x" * 1_000, partition=number % 6)
            producer.flush()
        yield started


@pytest.fixture
def pages(cluster: ThreadedCluster, tmp_path: Path) -> Iterator[ServedPages]:
    with served_pages(tmp_path, "-b", cluster.bootstrap, "--journal", str(tmp_path / "state")) as found:
        yield found


@pytest.fixture
def page(pages: ServedPages, running_browser: Any) -> Iterator[Any]:
    """An operator's page. Nothing may be written to the browser's console: no error, no blocked script."""
    said: list[str] = []
    context = running_browser.new_context()
    opened = pages.enter(context)
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    context.close()
    assert said == []


def check_accessibility(page: Any) -> None:
    """Fail on serious findings of axe, in both themes."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"])
            for each in Axe().run(page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert found == [], (page.url, theme)
    page.emulate_media(color_scheme="light")


def replicas_of(cluster: ThreadedCluster) -> dict[int, tuple[int, ...]]:
    with restow.connect(cluster.bootstrap) as kafka:
        return {each.number: each.replicas for each in kafka.snapshot().topic["orders"].partitions}


def test_plan_is_made_rehearsed_run_changed_and_undone_in_the_browser(
    cluster: ThreadedCluster, page: Any
) -> None:
    check_accessibility(page)
    page.click("nav >> text=Topics")
    page.click("main >> text=orders")
    page.wait_for_selector("table.matrix")
    check_accessibility(page)

    page.click("nav >> text=Plans")
    page.click("main >> text=balance")
    check_accessibility(page)
    page.click("button:has-text('Make the plan')")
    page.wait_for_selector("h2:has-text('Moves:')")
    check_accessibility(page)
    plan = page.url

    page.fill("#rehearse-throttle", "100kB/s")
    page.click("button:has-text('Rehearse it')")
    page.wait_for_selector("h2:has-text('What limits it')")
    check_accessibility(page)

    page.goto(plan)
    cluster_id = page.inner_text("dl.facts dd >> nth=0")
    page.fill("#approve input[name=throttle]", "2kB/s")
    page.fill("#approve input[name=cluster]", "another")
    page.click("button:has-text('Run this plan')")
    page.wait_for_selector("text=what was typed is another")
    page.fill("#approve input[name=cluster]", cluster_id)
    page.click("button:has-text('Run this plan')")

    page.wait_for_url("**/runs/*")
    page.wait_for_selector("text=under way")
    page.click("button:has-text('Pause')")
    page.wait_for_selector("#run .tile b:has-text('paused')")
    check_accessibility(page)
    page.click("button:has-text('Go on')")
    page.wait_for_selector("#run .tile b:has-text('under way')")
    page.fill("input[name=throttle]", "3kB/s")
    page.click("button:has-text('Change')")
    page.wait_for_selector("#run .tile b:has-text('3.0 kB/s')")
    page.fill("input[name=throttle]", "100MB/s")
    page.click("button:has-text('Change')")
    page.wait_for_selector("#run .tile.good b:has-text('done')")
    run = page.url
    assert page.inner_text("#timeline").count("predicted") == 1
    assert any(2 in replicas for replicas in replicas_of(cluster).values())

    page.click("text=Undo …")
    page.wait_for_selector("text=will be moved back")
    check_accessibility(page)
    page.fill("input[name=throttle]", "none")
    page.click("button:has-text('Move it back')")
    page.wait_for_url(lambda url: "/runs/" in url and url != run and not url.endswith("/undo"))
    page.wait_for_selector("#run .tile.good b:has-text('done')")
    assert replicas_of(cluster) == SKEWED

    page.click("nav >> text=Runs")
    page.wait_for_selector("text=undo of")
    check_accessibility(page)
    page.click("nav >> text=Audit")
    rows = page.inner_text("table")
    assert all(words in rows for words in ("plan balance", "rehearse", "run plan", "control", "undo run"))
    check_accessibility(page)


def test_page_follows_the_cluster_while_it_is_away_and_when_it_is_back(
    cluster: ThreadedCluster, page: Any
) -> None:
    cluster.kill_broker(1)
    page.wait_for_selector("#summary .tile.bad:has-text('2 of 3')")
    for broker in (0, 2):
        cluster.kill_broker(broker)
    page.wait_for_selector("text=The cluster is away")
    assert "Rack a" in page.inner_text("#brokers")
    for broker in (0, 1, 2):
        cluster.start_broker(broker)
    page.wait_for_selector("text=The cluster is away", state="detached")


def test_reading_works_without_scripts(pages: ServedPages, running_browser: Any) -> None:
    context = running_browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{pages.address}/")
    page.fill("input[name=token]", pages.tokens["viewer"])
    page.click("button:has-text('Enter')")
    for address, words in (
        ("/", "Rack a"),
        ("/topics", "orders"),
        ("/topic?name=orders", "partition"),
        ("/runs", "no run"),
    ):
        page.goto(f"{pages.address}{address}")
        assert words in page.inner_text("main")
    assert page.query_selector("text=New plan") is None
    context.close()
