"""The whole story in a browser, from skew to undo, on three brokers of which the last is empty."""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe
from kafka import KafkaProducer

import restow
from restow.client import NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.browser.served import ServedPages

PARTITIONS = 6


@dataclass(frozen=True)
class StoryStage:
    """A cluster in the story: its brokers, and how to kill one and start it again."""

    bootstrap: str
    brokers: tuple[int, int, int]
    kill: Callable[[int], object]
    start: Callable[[int], object]
    records: int = 1_800
    """Records of a kilobyte to move; Apache's brokers copy the first megabyte whatever the throttle."""
    unit: str = "kB/s"
    """In what the slow throttles are given; the run must last until all of it has been tried."""

    @property
    def skewed(self) -> dict[int, tuple[int, ...]]:
        """The replicas of `orders` at first: nothing on the last broker."""
        return dict.fromkeys(range(PARTITIONS), self.brokers[:2])

    def fill(self) -> None:
        """Create the topics, and write to one of them."""
        with restow.connect(self.bootstrap) as kafka:
            topics = [
                NewTopic(name="orders", by_hand=self.skewed),
                NewTopic(name="clicks", by_hand={0: self.brokers[1:]}),
            ]
            kafka.ask(lambda admin: admin.create_topics(topics))
        with closing(KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", linger_ms=20)) as producer:
            for number in range(self.records):
                producer.send("orders", b"x" * 1_000, partition=number % PARTITIONS)
            producer.flush()

    def replicas(self) -> dict[int, tuple[int, ...]]:
        with restow.connect(self.bootstrap) as kafka:
            return {each.number: each.replicas for each in kafka.snapshot().topic["orders"].partitions}


@contextmanager
def operator_page(pages: ServedPages, browser: Any) -> Iterator[Any]:
    """Return an operator's page. Nothing may be written to the console: no error, no blocked script.

    Chromium itself notes there that a form was refused, which is what a wrong one is for.
    """
    said: list[str] = []
    context = browser.new_context()
    opened = pages.enter(context)
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    context.close()
    assert [each for each in said if "status of 400 (Bad Request)" not in each] == []


def check_accessibility(page: Any) -> None:
    """Fail on serious findings of axe, in both themes."""
    backs = set()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        backs.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        found = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"])
            for each in Axe().run(page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert not found, (page.url, theme, found)
    assert len(backs) == 2, "both themes look the same"
    page.emulate_media(color_scheme="light")


def play(stage: StoryStage, page: Any, *, plan_options: dict[str, str] | None = None) -> None:
    """Look, plan, rehearse, run with a throttle change, a pause and a dead broker, and undo."""
    check_accessibility(page)
    _look(page)
    plan = _plan(page, plan_options or {})
    _rehearse(page)
    page.goto(plan)
    _approve(stage, page)
    _carry_out(stage, page)
    assert any(stage.brokers[2] in replicas for replicas in stage.replicas().values())
    _undo(stage, page)
    _look_back(page)


def _look(page: Any) -> None:
    page.click("nav >> text=Topics")
    page.click("main >> text=orders")
    page.wait_for_selector("table.matrix")
    check_accessibility(page)
    page.click("table.matrix tbody th a >> nth=0")
    page.wait_for_selector("h2:has-text('Its life')")
    check_accessibility(page)


def _plan(page: Any, options: dict[str, str]) -> str:
    page.click("nav >> text=Plans")
    page.click("main >> text=balance")
    check_accessibility(page)
    for name, value in options.items():
        page.eval_on_selector(f"[name={name}]", "(each, value) => { each.value = value }", value)
    page.click("button:has-text('Make the plan')")
    page.wait_for_selector("h2:has-text('Moves:')")
    check_accessibility(page)
    return str(page.url)


def _rehearse(page: Any) -> None:
    page.fill("#rehearse-throttle", "100kB/s")
    page.click("button:has-text('Rehearse it')")
    page.wait_for_selector("h2:has-text('What limits it')")
    check_accessibility(page)
    page.locator("input[data-shows=rehearse-throttle]").press("ArrowRight")
    assert page.input_value("#rehearse-throttle").endswith("MB/s")
    first = page.url
    page.click("button:has-text('Rehearse it')")
    page.wait_for_url(lambda url: "/rehearsals/" in url and url != first)
    page.wait_for_selector("h2:has-text('What limits it')")


def _approve(stage: StoryStage, page: Any) -> None:
    cluster_id = page.inner_text("dl.facts dd >> nth=0")
    page.fill("#approve input[name=throttle]", f"2{stage.unit}")
    page.fill("#approve input[name=cluster]", "another")
    page.click("button:has-text('Run this plan')")
    page.wait_for_selector("text=what was typed is another")
    page.fill("#approve input[name=cluster]", cluster_id)
    page.click("button:has-text('Run this plan')")
    page.wait_for_url("**/runs/*")


def _carry_out(stage: StoryStage, page: Any) -> None:
    page.wait_for_selector("#run .tile b:has-text('under way')")
    page.click("button:has-text('Pause')")
    page.wait_for_selector("#run .tile b:has-text('paused')")
    check_accessibility(page)
    page.click("button:has-text('Go on')")
    page.wait_for_selector("#run .tile b:has-text('under way')")
    page.fill("input[name=throttle]", f"3{stage.unit}")
    page.click("button:has-text('Change')")
    page.wait_for_selector(f"#run .tile b:has-text('3.0 {stage.unit}')")
    page.locator("#flows td").filter(has_text=re.compile(r"^[1-9][0-9.]* .?B/s$")).first.wait_for()
    stage.kill(stage.brokers[1])
    page.wait_for_selector("#run .tile.bad:has-text('under-replicated')")
    stage.start(stage.brokers[1])
    page.wait_for_selector("#run .tile.bad:has-text('under-replicated')", state="detached")
    page.fill("input[name=throttle]", "100MB/s")
    page.click("button:has-text('Change')")
    page.wait_for_selector("#run .tile.good b:has-text('done')")
    assert "predicted" in page.inner_text("#run")
    check_accessibility(page)


def _undo(stage: StoryStage, page: Any) -> None:
    run = page.url
    page.click("text=Undo …")
    page.wait_for_selector("text=will be moved back")
    check_accessibility(page)
    page.fill("input[name=throttle]", "none")
    page.click("button:has-text('Move it back')")
    page.wait_for_url(lambda url: "/runs/" in url and url != run and not url.endswith("/undo"))
    page.wait_for_selector("#run .tile.good b:has-text('done')")
    assert stage.replicas() == stage.skewed


def _look_back(page: Any) -> None:
    page.click("nav >> text=Runs")
    page.wait_for_selector("text=undo of")
    check_accessibility(page)
    page.click("nav >> text=Audit")
    rows = page.inner_text("table")
    assert all(words in rows for words in ("plan balance", "rehearse", "run plan", "control", "undo run"))
    check_accessibility(page)
