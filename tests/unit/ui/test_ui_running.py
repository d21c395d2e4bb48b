"""Runs that are begun and changed on pages. The commands are played by small programs."""

from __future__ import annotations

import asyncio
import html
import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.cli.ui.forms import command_line
from restow.execute.journal.runs import runs_of
from restow.execute.progress.stuck import Cause, StuckReplica
from restow.execute.run.control import Control
from restow.execute.run.lock import Holder, cluster_lock
from restow.model import Move, Plan, Step, TopicPartition
from restow.plan import write_plan
from restow.runtime.disk import SystemDisk
from restow.ui.app import application
from tests.unit.execute.stage import make_stage, plan_for
from tests.unit.ui.visitor import OPERATOR, VIEWER, Visitor, a_site, a_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from restow.ui.site import Site

MOVE = Move(partition=TopicPartition("orders", 0), before=(1, 2), after=(1, 3), size_bytes=100)
PLAN = Plan(cluster_id="fake", created_ms=0, moves=(MOVE,), title="the plan")


def in_one_wave(plan: Plan) -> Plan:
    """Return the plan with steps, as a plan file has to have them."""
    steps = tuple(
        Step(partition=each.partition, before=each.before, after=each.after, size_bytes=each.size_bytes)
        for each in plan.moves
    )
    return replace(plan, waves=(steps,))


def program(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose cluster has one run in its journals, and one plan made on its pages."""
    stage = make_stage(tmp_path)
    stage.execute(in_one_wave(plan_for(stage, [(1, 3), (1, 2), (2, 4), (2, 3)])))
    found = a_site(
        tmp_path, a_snapshot(cluster_id="fake"), command_line(("-b", "nobody:1"), str(tmp_path), None)
    )
    _, folder = found.store.new({"title": "the plan", "at_ms": 0})
    write_plan(in_one_wave(PLAN), folder / "plan.json")
    return found


@pytest.fixture
def visitor(site: Site) -> Iterator[Visitor]:
    with asyncio.Runner() as runner:
        yield Visitor(application(site), runner=runner).enter()
        for job in site.jobs.all():
            if job.process is not None and job.process.poll() is None:
                job.process.kill()
                job.process.wait()
        runner.run(site.jobs.close())


def approve(visitor: Visitor, site: Site, cluster: str = "fake", throttle: str = "50MB/s") -> str:
    """Approve the plan, and return where that leads."""
    [plan] = site.store.all()
    form = {"csrf": visitor.csrf, "cluster": cluster, "throttle": throttle}
    answered = visitor.post(f"/plans/{plan.id}/runs", form)
    return answered.headers.get("location", answered.text)


@contextmanager
def carried_out(site: Site) -> Iterator[str]:
    """Hold the lock of the cluster, as the process of its latest run would; return the run's name."""
    name = site.books.all()[0].name
    holder = Holder(pid=1, host="h", user="u", run=name)
    with cluster_lock(SystemDisk(), str(site.books.folder), holder):
        site.books.refresh("fake")
        yield name
    site.books.refresh("fake")


def test_run_begins_in_a_process_that_outlives_the_server(visitor: Visitor, site: Site) -> None:
    run = site.books.all()[0].name
    said = json.dumps({"at_ms": 1, "event": "run", "folder": f"/journals/{run}", "moves": 1})
    code = f"import sys, time; print({said!r}, flush=True); time.sleep(600)"
    site.commands = replace(site.commands, program=program(code))
    where = approve(visitor, site)
    [job] = site.jobs.all()
    visitor.until(lambda: job.run)
    assert f"/runs/{run}" in visitor.get(where).text
    visitor.run(site.jobs.close())
    assert job.process is not None
    assert job.process.poll() is None
    [entry] = site.audit.latest()
    assert (entry["what"], entry["throttle"]) == ("run the plan", "50MB/s")


def test_plan_is_only_approved_by_typing_its_clusters_id(visitor: Visitor, site: Site) -> None:
    for typed in ("", "FAKE", "another"):
        assert "what was typed is another" in approve(visitor, site, cluster=typed)
    assert "throttle is missing" in approve(visitor, site, throttle="")
    assert "value='fast'" in (told := approve(visitor, site, throttle="fast"))
    assert "'fast' is not a rate" in html.unescape(told)
    assert site.jobs.all() == []


def test_command_that_refuses_to_begin_is_quoted(visitor: Visitor, site: Site) -> None:
    code = "import sys; sys.exit('Error: the cluster has <drifted>')"
    site.commands = replace(site.commands, program=program(code))
    where = approve(visitor, site)
    [job] = site.jobs.all()
    visitor.until(lambda: job.is_over)
    assert "the cluster has &lt;drifted&gt;" in (text := visitor.get(where).text)
    assert f"<a href='/plans/{site.store.all()[0].id}'>Back</a>" in text


def test_second_operator_who_presses_the_same_button_is_told(visitor: Visitor, site: Site) -> None:
    site.commands = replace(site.commands, program=program("import time; time.sleep(600)"))
    approve(visitor, site)
    second = Visitor(visitor.app, runner=visitor.runner).enter()
    assert "has just begun to run the plan: wait for it" in approve(second, site)
    assert len(site.jobs.all()) == 1


def test_active_run_is_changed_by_its_control_file(visitor: Visitor, site: Site) -> None:
    with carried_out(site) as run:
        text = visitor.get(f"/runs/{run}").text
        assert "data-run='active'" in text
        assert "<section data-when='ended' hidden>" in text
        assert [state for state in ("active", "paused") if f"data-when='{state}' hidden" in text] == [
            "paused"
        ]
        control = Control(SystemDisk(), str(site.books.folder / run))
        for form in ({"action": "pause"}, {"throttle": "20MB/s,22-06=200MB/s", "moves_in": "3"}):
            answered = visitor.post(f"/runs/{run}/control", {"csrf": visitor.csrf, **form})
            assert answered.status == 303, answered.text
        asked = control.news()
        assert asked is not None
        assert (asked.paused, asked.throttle, asked.moves_in) == (True, "20MB/s,22-06=200MB/s", 3)


@pytest.mark.parametrize(
    "form", [{}, {"throttle": "fast"}, {"moves_in": "0"}, {"moves_out": "-1"}, {"action": "explode"}]
)
def test_change_that_the_command_would_refuse_is_refused(
    visitor: Visitor, site: Site, form: dict[str, str]
) -> None:
    with carried_out(site) as run:
        answered = visitor.post(f"/runs/{run}/control", {"csrf": visitor.csrf, **form})
        assert answered.status == 400
        assert "Change this run" in answered.text  # the form comes back with what was filled in
        for name, value in form.items():
            assert name == "action" or f"name='{name}' value='{value}'" in answered.text
        assert not (site.books.folder / run / "control.json").exists()


def test_run_that_nobody_carries_out_cannot_be_changed(visitor: Visitor, site: Site) -> None:
    run = site.books.all()[0].name
    answered = visitor.post(f"/runs/{run}/control", {"csrf": visitor.csrf, "action": "pause"})
    assert answered.status == 409
    assert "not being carried out" in answered.text
    assert f"<a href='/runs/{run}'>To the run</a>" in answered.text


@pytest.mark.parametrize(
    ("command", "document", "words"),
    [
        (
            "undo",
            {"run": "r", "moves": [{"partition": "<i>-0", "before": [3], "after": [1]}], "bytes_to_copy": 5},
            "1 partition will be moved back",
        ),
        (
            "cancel",
            {"run": "r", "under_way": ["<i>-0"], "throttles": 2},
            "1 move under way will be taken back",
        ),
        (
            "resume",
            {
                "run": "r",
                "partitions_left": 4,
                "steps_left": 4,
                "under_way": 1,
                "throttles": 0,
                "left_alone": {"<i>": "w"},
            },
            "4 partitions are left to move, 1 of them under way. 1 partition will be left alone.",
        ),
    ],
)
def test_confirmation_says_what_the_command_says(
    visitor: Visitor, site: Site, command: str, document: dict[str, object], words: str
) -> None:
    run = site.books.all()[0].name
    site.commands = replace(site.commands, program=program(f"print({json.dumps(document)!r})"))
    text = visitor.get(f"/runs/{run}/{command}").text
    assert words in text
    assert "&lt;i&gt;" in text
    assert list((site.store.folder / "previews").iterdir()) == []


def test_confirmation_quotes_a_refusal(visitor: Visitor, site: Site) -> None:
    run = site.books.all()[0].name
    site.commands = replace(site.commands, program=program("import sys; sys.exit('Error: broker 3 is down')"))
    answered = visitor.get(f"/runs/{run}/undo")
    assert (answered.status, "broker 3 is down" in answered.text) == (409, True)


def test_undo_passes_its_options_on(visitor: Visitor, site: Site) -> None:
    code = "import sys; sys.exit('Error: ' + ' '.join(sys.argv[1:]))"
    site.commands = replace(site.commands, program=program(code))
    run = site.books.all()[0].name
    form = {"csrf": visitor.csrf, "throttle": "1MB/s", "as_far_as_possible": "yes"}
    where = visitor.post(f"/runs/{run}/undo", form).headers["location"]
    [job] = site.jobs.all()
    visitor.until(lambda: job.is_over)
    assert (
        f"undo --run={run} --yes --throttle=1MB/s --as-far-as-possible -b nobody:1" in visitor.get(where).text
    )


def test_viewers_and_read_only_servers_change_no_run(site: Site) -> None:
    run, plan = site.books.all()[0].name, site.store.all()[0].id
    read_only = replace(site.settings, read_only=True)
    for token, settings in ((VIEWER, site.settings), (OPERATOR, read_only)):
        site.settings = settings
        visitor = Visitor(application(site)).enter(token)
        form = {"csrf": visitor.csrf, "cluster": "fake", "throttle": "none", "action": "pause"}
        for address in (
            f"/plans/{plan}/runs",
            f"/runs/{run}/control",
            f"/runs/{run}/undo",
            f"/runs/{run}/cancel",
        ):
            assert visitor.post(address, form).status == 403
        assert visitor.get(f"/runs/{run}/undo").status == 403
        assert "data-when" not in visitor.get(f"/runs/{run}").text
        assert "id='approve'" not in visitor.get(f"/plans/{plan}").text
    assert site.jobs.all() == []


@pytest.mark.parametrize("address", ["/runs/x/undo", "/runs/../undo", "/starts/x"])
def test_run_that_is_not_there_is_not_found(visitor: Visitor, address: str) -> None:
    assert visitor.get(address).status == 404


def test_prediction_and_its_error_are_those_of_the_journal(visitor: Visitor, site: Site) -> None:
    [book] = site.books.all()
    [run] = runs_of(SystemDisk(), site.settings.journal, "fake").all()
    ledger = run.ledger
    assert ledger.prediction is not None
    assert (book.prediction, book.took_s) == (ledger.prediction, ledger.took_s)
    assert tuple(book.copied) == ledger.copied
    assert book.prediction_error is not None
    told = f"{book.prediction_error:+.1%}"
    assert told in visitor.get("/runs").text
    assert f"{abs(book.prediction_error):.1%}" in visitor.get(f"/runs/{book.name}").text
    assert "as predicted" in visitor.get(f"/runs/{book.name}").text


def test_run_says_what_stands_still_and_why_it_is_paused(visitor: Visitor, site: Site) -> None:
    with carried_out(site) as run:
        book = site.books.get(run)
        assert book is not None
        assert book.status is not None
        stuck = StuckReplica(
            partition=TopicPartition("orders", 0),
            broker=3,
            cause=next(iter(Cause)),
            evidence="it has not grown for <minutes>",
            advice="look at broker 3",
        )
        report = replace(book.status.report, still=(stuck,))
        book.status = replace(book.status, report=report, paused="broker 3 is <down>")
        text = visitor.get(f"/runs/{run}").text
    assert "Stands still: orders-0 to 3: " in text
    assert "it has not grown for &lt;minutes&gt;: look at broker 3" in text
    assert "Paused: broker 3 is &lt;down&gt;" in text
    assert "data-run='paused'" in text
    assert [state for state in ("active", "paused") if f"data-when='{state}' hidden" in text] == ["active"]


def test_audit_log_is_shown_newest_first_and_survives_junk(visitor: Visitor, site: Site) -> None:
    site.audit.write("operator 1", "first", run="<b>")
    site.audit.write("operator 2", "second")
    with (site.store.folder / "audit.jsonl").open("a") as file:
        file.write('{"torn": \n[1]\n')
    assert [each["what"] for each in site.audit.latest()] == ["second", "first"]
    site.audit.write("operator 3", "rehearse p-1", id="r-1", asked={"special_last": True})
    site.audit.write("operator 3", "run plan balance", id="x", plan="p-1", digest=f"sha256:{'0' * 64}")
    text = visitor.get("/audit").text
    for address in ("/plans/p-1/rehearsals/r-1", "/plans/p-1", "/runs/%3Cb%3E"):
        assert f"<a href='{address}'>" in text
    assert "special last yes" in text
    assert f"digest sha256:{'0' * 12}…" in text
    assert text.index("second") < text.index("first")
    assert "run &lt;b&gt;" in text
