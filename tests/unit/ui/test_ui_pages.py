"""What the pages show of a cluster and of its journals."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import Unreachable
from restow.model import Copy, LiveBroker, Move, Partition, Plan, Snapshot, Topic, TopicPartition
from restow.plan import write_plan
from restow.ui import feeds
from restow.ui.api import ROUTES, openapi
from restow.ui.app import application
from restow.ui.feeds import Feed, Feeds
from restow.ui.pages.cluster import cluster_parts
from restow.ui.sums import sums_of
from restow.ui.watching import ClusterWatch, look_of
from tests.clock import SleepingClock
from tests.unit.execute.stage import make_stage, plan_for
from tests.unit.ui.test_ui_running import in_one_wave
from tests.unit.ui.visitor import StillCluster, Visitor, a_site, a_snapshot, a_visitor

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.execute.stage import Stage


def test_sums_count_what_the_snapshot_has() -> None:
    sums = sums_of(a_snapshot())
    assert {each.id: each.state for each in sums.brokers} == {1: "up", 2: "up", 3: "up", 9: "down"}
    assert [each.id for each in sums.brokers if each.is_controller] == [2]
    assert {each.id: each.replicas for each in sums.brokers} == {1: 3, 2: 2, 3: 1, 9: 2}
    assert {each.id: each.leaders for each in sums.brokers} == {1: 2, 2: 1, 3: 0, 9: 0}
    assert {each.id: each.out_of_sync for each in sums.brokers} == {1: 0, 2: 0, 3: 1, 9: 2}
    assert (sums.under_replicated, sums.offline, sums.moving, sums.not_preferred) == (3, 1, 1, 1)
    assert [each.size_bytes for each in sums.brokers] == [300, 200, 100, None]
    assert [str(each) for each in sums.some_offline] == ["lost-0"]


def test_cluster_page_shows_racks_brokers_and_what_needs_attention(tmp_path: Path) -> None:
    text = a_visitor(tmp_path).get("/").text
    for words in (
        "Rack a",
        "Rack b",
        "Brokers that are down",
        "<small>controller</small>",
        "60% of 1.0 kB used",
        "lost-0",
    ):
        assert words in text


def test_large_cluster_is_summed_up_by_rack_first(tmp_path: Path) -> None:
    brokers = tuple(LiveBroker(id=each, host="h", port=1, rack=f"r{each % 3}") for each in range(1_000))
    partitions = tuple(
        Partition(each, (each,), (each,), each, copies=(Copy(each, "/d", 5),)) for each in range(1_000)
    )
    shown = Snapshot(
        cluster_id="c",
        taken_ms=1,
        controller=0,
        brokers=brokers,
        topics=(Topic(name="t", partitions=partitions),),
    )
    text = a_visitor(tmp_path, shown).get("/").text
    assert text.count("<tr>") < 100
    assert text.count("aria-label='broker ") == 1_000
    assert len(text) < 500_000
    table = a_visitor(tmp_path, shown).get("/brokers?rack=r1&page=2").text
    assert "page 2 of 2" in table
    assert "/broker?id=998'" not in table
    assert "/broker?id=997'" in table
    topic = a_visitor(tmp_path, shown).get("/topic?name=t").text
    assert "Its 1,000 brokers are too many for a matrix" in topic
    assert "<a href='/broker?id=7'>7</a></td><td class='l'>r1</td>" in topic


def test_topics_are_searched_by_a_part_of_their_name(tmp_path: Path) -> None:
    visitor = a_visitor(tmp_path)
    assert "1 of 2 topics" in visitor.get("/topics?search=RDER").text
    assert "name=lost" not in visitor.get("/topics?search=RDER").text


def test_matrix_marks_leaders_followers_and_moves(tmp_path: Path) -> None:
    text = a_visitor(tmp_path).get("/topic?name=orders").text
    rows = [
        re.findall(r"<td class='(\w*)' title='broker (\d) ", row)
        for row in text.split("<th scope='row'>")[1:]
    ]
    assert rows == [
        [("", "2"), ("leads", "1")],
        [("leads", "1"), ("late", "9")],
        [("leads", "2"), ("goes", "1"), ("comes", "3")],
    ]


def test_cluster_that_is_away_leaves_its_last_state_and_comes_back() -> None:
    source, clock, told = StillCluster(a_snapshot()), SleepingClock(), []
    watch = ClusterWatch(source, clock, lambda: told.append(watch.last.away_since_ms))
    asyncio.run(watch.look())
    source.away = Unreachable("no broker <answers>")
    asyncio.run(watch.look())
    since_ms = watch.last.away_since_ms
    clock.now_s += 100
    asyncio.run(watch.look())
    assert watch.last.away_since_ms == since_ms == told[1]
    parts = cluster_parts(watch.last, None)
    assert "The cluster is away" in parts["summary"]
    assert "no broker &lt;answers&gt;" in parts["summary"]
    assert "Rack a" in parts["brokers"]
    source.away = None
    asyncio.run(watch.look())
    assert watch.last.away_since_ms is None
    assert "away" not in cluster_parts(watch.last, None)["summary"]


def test_pages_work_before_the_cluster_has_answered(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    site.watch.last = replace(look_of(a_snapshot()), snapshot=None, sums=None, bands=None, away_since_ms=1)
    visitor = Visitor(application(site)).enter()
    for address in ("/", "/topics", "/brokers", "/runs", "/api/v1/cluster", "/api/v1/topics", "/metrics"):
        assert visitor.get(address).status == 200
    assert visitor.get("/topic?name=orders").status == 404


@pytest.fixture
def ran(tmp_path: Path) -> Stage:
    """A cluster on which one run has ended."""
    stage = make_stage(tmp_path)
    stage.execute(plan_for(stage, [(5, 6), (1, 2), (4, 1), (2, 3)]))
    return stage


def visitor_of(stage: Stage, folder: Path) -> Visitor:
    return a_visitor(folder, a_snapshot(cluster_id=asyncio.run(stage.admin.describe_cluster()).cluster_id))


def test_run_that_a_terminal_began_is_shown_with_its_moves(ran: Stage, tmp_path: Path) -> None:
    visitor = visitor_of(ran, tmp_path)
    listed = visitor.get("/api/v1/runs").document["runs"]
    assert [(each["outcome"], each["moves"], each["arrived"]) for each in listed] == [("done", 2, 2)]
    name = listed[0]["run"]
    assert name in visitor.get("/runs").text
    text = visitor.get(f"/runs/{name}").text
    assert "2 of 2" in text
    assert "t-0" in text
    assert "ends: done" in text
    details = visitor.get(f"/api/v1/runs/{name}").document
    assert {each["partition"]: each["after"] for each in details["moved"]} == {0: [5, 6], 2: [4, 1]}
    assert all(each["begun_ms"] <= each["ended_ms"] for each in details["moved"])


def test_journal_is_read_on_from_where_it_was_left(ran: Stage, tmp_path: Path) -> None:
    site = a_site(tmp_path, a_snapshot(cluster_id=asyncio.run(ran.admin.describe_cluster()).cluster_id))
    [book] = site.books.all()
    whole = (book.folder / "journal.jsonl").read_bytes()
    events, moment = list(book.events), book.ended_ms
    lines = whole.splitlines(keepends=True)
    (book.folder / "journal.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    again = a_site(tmp_path, a_snapshot(cluster_id=site.watch.last.cluster_id or "")).books
    [part] = again.all()
    assert part.outcome is None
    assert not part.wrong
    (book.folder / "journal.jsonl").write_bytes(whole)
    assert again.refresh(site.watch.last.cluster_id or "") == {book.name}
    assert (part.events, part.outcome, part.ended_ms) == (events, "done", moment)
    assert again.refresh(site.watch.last.cluster_id or "") == set()


def test_damaged_journal_is_named_and_the_others_are_shown(ran: Stage, tmp_path: Path) -> None:
    ran.undo()
    visitor = visitor_of(ran, tmp_path)
    first, second = (each["run"] for each in reversed(visitor.get("/api/v1/runs").document["runs"]))
    [path] = tmp_path.rglob(f"{first}/journal.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"submit"', b'"sabmit"'))
    visitor = visitor_of(ran, tmp_path)
    assert "this is not what was written" in visitor.get(f"/runs/{first}").text
    text = visitor.get("/runs").text
    assert "this is not what was written" in text
    assert f"undo of {first}" in text
    assert visitor.get(f"/runs/{second}").status == 200


def test_partition_page_tells_where_it_was_is_and_will_be(ran: Stage, tmp_path: Path) -> None:
    cluster_id = asyncio.run(ran.admin.describe_cluster()).cluster_id
    site = a_site(tmp_path, a_snapshot(cluster_id=cluster_id, name="t"))
    run = site.books.all()[0].name
    _, folder = site.store.new({"title": "the <next> plan", "at_ms": 0})
    partition = TopicPartition("t", 2)
    moves = (Move(partition=partition, before=(3, 1, 2), after=(1, 2), size_bytes=100),)
    plan = Plan(cluster_id=cluster_id, created_ms=0, moves=moves)
    write_plan(in_one_wave(plan), folder / "plan.json")
    text = Visitor(application(site)).enter().get("/partition?topic=t&partition=2").text
    rows = re.findall(r"<tr><th scope='row'>(.*?)</th>.*?<td>([\d, ]+)</td></tr>", text)
    told = [(re.sub("<.*?>", "", words), replicas) for words, replicas in rows]
    assert told == [
        (f"before run {run}", "2, 1"),
        (f"after run {run}", "4, 1"),
        ("now", "3, 1, 2"),
        ("when its reassignment ends", "3, 2"),
        ("if the plan the &lt;next&gt; plan is run", "1, 2"),
    ]


def test_api_is_described_and_answers_every_address(ran: Stage, tmp_path: Path) -> None:
    visitor = visitor_of(ran, tmp_path)
    described = visitor.get("/api/v1/openapi.json").document
    assert described == json.loads(json.dumps(openapi()))
    assert set(described["paths"]) == {f"/api/v1{each.path}" for each in ROUTES}
    run = visitor.get("/api/v1/runs").document["runs"][0]["run"]
    asked = {"topic": "orders", "run": run, "first": "x", "second": "x"}
    answered = {}
    for path, operations in described["paths"].items():
        if "get" not in operations:
            continue
        query = "&".join(
            f"{each['name']}={asked[each['name']]}"
            for each in operations["get"]["parameters"]
            if each["in"] == "query" and each["required"]
        )
        answered[path.removeprefix("/api/v1")] = visitor.get(f"{path.replace('{run}', run)}?{query}").status
    none_there = {path for path in answered if "{plan}" in path or "{job}" in path} | {"/compare"}
    assert {path: status for path, status in answered.items() if status != 200} == {
        **dict.fromkeys(none_there, 404),
        "/runs/{run}/{command}": 403,  # there is no cluster behind this site
    }


def test_metrics_are_in_prometheus_format(tmp_path: Path) -> None:
    text = a_visitor(tmp_path).get("/metrics").text
    assert 'restow_broker_up{broker="9",rack=""} 0' in text
    assert "restow_partitions_under_replicated 3\n" in text
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [-+.\de]+', line), line
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_feed_renders_once_for_all_viewers_and_skips_versions_for_slow_ones() -> None:
    rendered = []

    def render() -> dict[str, str]:
        rendered.append(len(rendered))
        return {"part": f"version {len(rendered)}"}

    async def main() -> list[bytes]:
        feed = Feed(render)
        first, second = feed.events(), feed.events()
        seen = [await anext(first), await anext(second)]
        for _ in range(3):
            feed.change()
        seen += [await anext(second), await anext(first)]
        feed.end()
        seen += [each async for each in first]
        return seen

    seen = asyncio.run(main())
    assert seen[0] == seen[1]
    assert seen[2] == seen[3] == b'event: parts\ndata: {"parts": {"part": "version 2"}}\n\n'
    assert len(seen) == 4


def test_feed_empties_parts_that_are_gone() -> None:
    parts = {"a": "1", "b": "1"}

    async def main() -> bytes:
        feed = Feed(lambda: dict(parts))
        events = feed.events()
        await anext(events)
        del parts["b"]
        feed.change()
        return await anext(events)

    assert asyncio.run(main()) == b'event: parts\ndata: {"parts": {"b": ""}}\n\n'


def test_feed_sends_only_the_parts_that_have_changed() -> None:
    parts = {"a": "1", "b": "1"}

    async def main() -> list[bytes]:
        feed = Feed(lambda: dict(parts))
        events = feed.events()
        seen = [await anext(events)]
        feed.change()  # nothing is different: nothing is sent
        parts["b"] = "2"
        feed.change()
        seen.append(await anext(events))
        late = feed.events()
        seen.append(await anext(late))
        return seen

    assert asyncio.run(main()) == [
        b'event: parts\ndata: {"parts": {"a": "1", "b": "1"}}\n\n',
        b'event: parts\ndata: {"parts": {"b": "2"}}\n\n',
        b'event: parts\ndata: {"parts": {"a": "1", "b": "2"}}\n\n',
    ]


def test_feeds_forget_pages_that_nobody_looks_at() -> None:
    async def main() -> tuple[int, int]:
        all_feeds = Feeds()
        events = all_feeds.events("cluster", lambda: {"a": "b"})
        await anext(events)
        during = all_feeds.viewers
        await events.aclose()  # type: ignore[attr-defined]
        return during, len(all_feeds._feeds)

    assert asyncio.run(main()) == (1, 0)


def test_feed_that_changes_without_a_difference_still_sends_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "_STILL_HERE_S", 0.05)

    async def main() -> list[bytes]:
        all_feeds = Feeds()
        events = all_feeds.events("cluster", lambda: {"a": "1"})

        async def keep_changing() -> None:
            while True:
                all_feeds.change("cluster")
                await asyncio.sleep(0.001)

        changing = asyncio.create_task(keep_changing())
        seen = [await anext(events), await anext(events)]
        changing.cancel()
        return seen

    assert asyncio.run(main())[1] == feeds._STILL_HERE


def test_feed_ends_with_the_session_of_its_viewer() -> None:
    async def main() -> list[bytes]:
        all_feeds, open_, parts = Feeds(), [True], {"a": "1"}
        seen = []
        async for event in all_feeds.events("cluster", lambda: parts, lambda: open_[0]):
            seen.append(event)
            open_[0] = False
            parts["a"] = "2"
            all_feeds.change("cluster")
        assert all_feeds.viewers == 0
        return seen

    assert asyncio.run(main()) == [b'event: parts\ndata: {"parts": {"a": "1"}}\n\n']


def test_live_parts_are_those_of_the_page(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    text = Visitor(application(site)).enter().get("/").text
    for name, html in cluster_parts(site.watch.last, None).items():
        assert f"<div id='{name}'>{html}</div>" in text
    assert "data-feed='/events?page=cluster'" in text
