"""Plans and rehearsals on pages, made by the commands themselves, from a snapshot file."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import restow
from restow.cli.ui.forms import command_line
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.plan import write_plan
from restow.plan.files.text import loads
from restow.snapshot import write_snapshot
from restow.ui import large_files
from restow.ui.app import application
from tests.unit.ui.visitor import VIEWER, Visitor, a_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from restow.ui.commands import CommandLine
    from restow.ui.site import Site

MB = 1_000_000


def skewed() -> Snapshot:
    """Three brokers; the third is empty."""
    dirs = (LogDir(path="/d", total_bytes=10**12, usable_bytes=9 * 10**11),)
    return Snapshot(
        cluster_id="the-cluster",
        taken_ms=1_790_000_000_000,
        controller=1,
        brokers=tuple(LiveBroker(id=each, host="h", port=1, log_dirs=dirs) for each in (1, 2, 3)),
        topics=(
            Topic(
                name="orders",
                partitions=tuple(
                    Partition(each, (1, 2), (1, 2), 1, copies=(Copy(1, "/d", MB), Copy(2, "/d", MB)))
                    for each in range(9)
                ),
            ),
        ),
    )


def offline_commands(folder: Path) -> CommandLine:
    """Return commands that read a snapshot file instead of a cluster."""
    path = folder / "snapshot.json"
    write_snapshot(skewed(), path)
    line = command_line(("-b", "nobody:1"), str(folder), None)
    return replace(line, snapshot=("--snapshot", str(path)))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return a_site(tmp_path, skewed(), offline_commands(tmp_path))


@pytest.fixture
def visitor(site: Site) -> Iterator[Visitor]:
    with asyncio.Runner() as runner:
        yield Visitor(application(site), runner=runner).enter()
        runner.run(site.jobs.close())


def ended(visitor: Visitor, site: Site, address: str) -> str:
    """Wait for the job of a page, and return the page."""
    job = site.jobs.get(address.rpartition("/")[2])
    assert job is not None
    visitor.until(lambda: job.is_over)
    return visitor.get(address).text


def test_plan_is_made_rehearsed_downloaded_and_compared(visitor: Visitor, site: Site) -> None:
    csrf = visitor.csrf
    made = visitor.post("/plans", {"csrf": csrf, "kind": "balance"})
    assert made.status == 303
    where = made.headers["location"]
    assert "under way" in visitor.get(where).text
    text = ended(visitor, site, where)
    assert "of the least possible" in text
    assert "Goals" in text

    plan = loads(visitor.get(f"{where}/download?form=restow").text)
    assert {3} == {broker for move in plan.moves for broker in move.adding}
    kafka = visitor.get(f"{where}/download?form=kafka")
    assert len(kafka.document["partitions"]) == len(plan.moves)
    assert "attachment" in kafka.headers["content-disposition"]
    assert visitor.get(f"{where}/download?form=passwd").status == 400

    asked = {"csrf": csrf, "throttle": "1MB/s", "special_last": "yes", "what_if": "broker 2 dies at 30%"}
    rehearsal = visitor.post(f"{where}/rehearsals", asked).headers["location"]
    told = ended(visitor, site, rehearsal)
    for words in ("What limits it", "Timeline:", "If broker 2 dies at 30%", "steps under way"):
        assert words in told
    assert rehearsal in visitor.get(where).text

    uploaded = visitor.send(
        "POST", "/plans/upload?name=moves.json", [kafka.text.encode()], {"x-csrf-token": csrf}
    ).document["location"]
    assert f"Moves: {len(plan.moves)}" in ended(visitor, site, uploaded)
    first, second = (each.rpartition("/")[2] for each in (where, uploaded))
    compared = visitor.get(f"/plans/compare?first={first}&second={second}").text
    assert f"{len(plan.moves)} partitions go the same way in both, 0 another way" in compared
    assert [each["what"] for each in reversed(site.audit.latest())] == [
        *("plan balance", f"rehearse {first}", "upload moves.json")
    ]


def test_moves_of_a_plan_are_searched_by_topic_and_broker(visitor: Visitor, site: Site) -> None:
    made = visitor.post("/plans", {"csrf": visitor.csrf, "kind": "balance"}).headers["location"]
    whole = ended(visitor, site, made)
    found = list(site.store.read(site.store.all()[0]).moves)
    moves, there = len(found), sum(3 in (*each.before, *each.after) for each in found)
    assert f"Moves: {moves}" in whole
    assert "orders-" in visitor.get(f"{made}?topic=ORD&broker=").text
    assert 0 < there < moves
    assert f"{there} of {moves} moves" in visitor.get(f"{made}?topic=ord&broker=3").text
    nothing = visitor.get(f"{made}?topic=%3Cb%3E&broker=77")
    assert f"0 of {moves} moves" in nothing.text
    assert "value='&lt;b&gt;'" in nothing.text
    assert visitor.get(f"{made}?broker=three").status == 400


def test_large_plan_that_nobody_has_read_yet_is_read_in_the_background(
    visitor: Visitor, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", 0)
    name, folder = site.store.new({"title": "plan balance"})
    write_plan(restow.plan(skewed(), balance=True), folder / "plan.json")
    first = visitor.get(f"/plans/{name}").text
    assert "read plan balance" in first
    assert f"data-feed='/events?page=job&amp;job={name}'" in first
    assert "Moves:" not in first
    job = site.jobs.get(name)
    visitor.until(lambda: job is not None and job.is_over)
    assert "Moves:" in visitor.get(f"/plans/{name}").text
    another = Visitor(application(a_site(folder.parents[3], skewed()))).enter()
    assert "Moves:" in another.get(f"/plans/{name}").text  # what was read is kept


def test_large_plan_that_is_damaged_says_so_after_it_was_read(
    visitor: Visitor, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", 0)
    name, folder = site.store.new({"title": "plan balance"})
    write_plan(restow.plan(skewed(), balance=True), folder / "plan.json")
    text = (folder / "plan.json").read_text(encoding="utf-8")
    (folder / "plan.json").write_text(
        text.replace(f'"size_bytes": {MB}', '"size_bytes": 7', 1), encoding="utf-8"
    )
    visitor.get(f"/plans/{name}")
    job = site.jobs.get(name)
    visitor.until(lambda: job is not None and job.is_over)
    answered = visitor.get(f"/plans/{name}")
    assert answered.status == 400
    assert "was changed after it was made" in answered.text


def test_command_that_refuses_is_quoted(visitor: Visitor, site: Site) -> None:
    made = visitor.post("/plans", {"csrf": visitor.csrf, "kind": "drain", "brokers": "<b>77</b>"})
    text = ended(visitor, site, made.headers["location"])
    assert "&lt;b&gt;77&lt;/b&gt;&#x27; is not a list of broker ids" in text


def test_form_that_is_not_filled_in_comes_back_with_what_was_given(visitor: Visitor, site: Site) -> None:
    answered = visitor.post("/plans", {"csrf": visitor.csrf, "kind": "drain", "topics": "a'b"})
    assert answered.status == 400
    assert "brokers is missing" in answered.text
    assert "value='a&#x27;b'" in answered.text
    assert site.store.all() == []


@pytest.mark.parametrize(
    "body", [b'{"restow_plan": 2, "digest": "no"}', b'{"partitions": 3}', b"\xff\xfe", b"[" * 100_000]
)
def test_junk_upload_is_refused_with_a_sentence(visitor: Visitor, site: Site, body: bytes) -> None:
    answered = visitor.send("POST", "/plans/upload?name=x", [body], {"x-csrf-token": visitor.csrf})
    text = ended(visitor, site, answered.document["location"])
    assert "<p class='bad'>" in text
    assert "Traceback" not in text
    assert not site.store.all()[0].is_there


def test_upload_without_the_pages_token_or_too_large_is_refused(visitor: Visitor, site: Site) -> None:
    assert visitor.send("POST", "/plans/upload", [b"{}"]).status == 403
    large = {"x-csrf-token": visitor.csrf, "content-length": str(10**9)}
    assert visitor.send("POST", "/plans/upload", [b"{}"], large).status == 413
    assert site.store.all() == []


def test_upload_without_a_script_is_explained(visitor: Visitor, site: Site) -> None:
    answered = visitor.post("/plans/upload", {"csrf": visitor.csrf, "file": "moves.json"})
    assert answered.status == 415
    assert "without scripts" in answered.text
    assert site.store.all() == []


@pytest.mark.parametrize("name", ["..", "../../../etc", "20261118-023624-zzzz", "20261118-023624-a9ac"])
def test_plan_that_is_not_there_is_not_found(visitor: Visitor, name: str) -> None:
    for address in (f"/plans/{name}", f"/plans/{name}/download", f"/plans/{name}/rehearsals/{name}"):
        assert visitor.get(address).status == 404


@pytest.mark.parametrize("address", ["/plans", "/plans/upload", "/plans/x/rehearsals"])
def test_viewers_and_read_only_servers_make_no_plans(tmp_path: Path, address: str) -> None:
    commands = offline_commands(tmp_path)
    for token, settings in ((VIEWER, {}), ("the-operators-token", {"read_only": True})):
        site = a_site(tmp_path, skewed(), commands, **settings)
        visitor = Visitor(application(site)).enter(token)
        assert visitor.post(address, {"csrf": visitor.csrf, "kind": "balance"}).status == 403
        assert "New plan" not in visitor.get("/plans").text
        assert visitor.get("/plans/new?kind=balance").status == 403
        assert site.store.all() == []


def test_command_that_hangs_is_ended_with_the_server(site: Site, visitor: Visitor) -> None:
    site.commands = replace(site.commands, program=(sys.executable, "-c", "import time; time.sleep(600)"))
    where = visitor.post("/plans", {"csrf": visitor.csrf, "kind": "balance"}).headers["location"]
    job = site.jobs.get(where.rpartition("/")[2])
    assert job is not None
    visitor.until(lambda: job.process is not None)
    visitor.run(site.jobs.close())
    assert job.process is not None
    assert job.process.wait(timeout=60) != 0
