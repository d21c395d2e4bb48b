"""Changes through the API: the same actions as on the pages, with tokens, roles and CSRF."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from restow.cli.ui.forms import command_line
from restow.plan.files.text import digest_of
from restow.ui.api import PREFIX, ROUTES
from restow.ui.app import application
from tests.unit.ui.test_ui_running import PLAN, carried_out, in_one_wave, program, site
from tests.unit.ui.visitor import OPERATOR, VIEWER, Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.ui.site import Site
    from tests.unit.ui.visitor import Answered

__all__ = ["site"]


@pytest.fixture
def caller(site: Site) -> Iterator[Visitor]:
    """A program with the operator's token, and no cookie."""
    with asyncio.Runner() as runner:
        headers = {"authorization": f"Bearer {OPERATOR}"}
        yield Visitor(application(site), runner=runner, headers=headers)
        for job in site.jobs.all():
            if job.process is not None and job.process.poll() is None:
                job.process.kill()
                job.process.wait()
        runner.run(site.jobs.close())


def sent(caller: Visitor, path: str, body: Any, **headers: str) -> Answered:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return caller.send("POST", PREFIX + path, [data], {"content-type": "application/json", **headers})


def arguments_of(site: Site) -> None:
    """Let commands fail with their arguments as the complaint."""
    code = "import sys; sys.exit('Error: ' + ' '.join(sys.argv[1:]))"
    site.commands = replace(site.commands, program=program(code))


def outcome(caller: Visitor, site: Site, answered: Answered) -> dict[str, Any]:
    assert answered.status == 202, answered.text
    job = site.jobs.get(answered.document["job"])
    assert job is not None
    caller.until(lambda: job.is_over)
    return dict(caller.get(f"{PREFIX}/jobs/{job.id}").document)


def test_plan_is_made_with_the_options_of_the_command(caller: Visitor, site: Site) -> None:
    arguments_of(site)
    body = {"kind": "drain", "options": {"brokers": "3", "partial": True, "topics": "a*,b"}}
    told = outcome(caller, site, sent(caller, "/plans", body))
    assert told["done"]
    said = told["wrong"]
    assert said.startswith("plan drain ")
    assert all(flag in said for flag in ("--partial", "--topics=a*,b", "-- 3"))
    assert site.audit.latest()[0]["who"] == "operator token"


def test_option_that_is_left_out_keeps_the_default_of_the_command(caller: Visitor, site: Site) -> None:
    arguments_of(site)
    plan = site.store.all()[0].id
    usual = [each for each in (site.commands.rehearse.fields if site.commands.rehearse else ()) if each.off]
    assert usual
    path, options = f"/plans/{plan}/rehearsals", {"throttle": "1MB/s"}
    plain = outcome(caller, site, sent(caller, path, {"options": options}))
    assert usual[0].off not in plain["wrong"]
    without = outcome(caller, site, sent(caller, path, {"options": {**options, usual[0].name: False}}))
    assert usual[0].off in without["wrong"]


def test_run_needs_the_clusters_id_and_may_pin_the_digest(caller: Visitor, site: Site) -> None:
    arguments_of(site)
    plan, digest = site.store.all()[0].id, digest_of(in_one_wave(PLAN))
    path = f"/plans/{plan}/runs"
    for body, words in (
        ({"options": {"throttle": "1MB/s"}}, "type the id"),
        (
            {"cluster": "fake", "digest": "0" * 64, "options": {"throttle": "1MB/s"}},
            "the digest of this plan is",
        ),
        ({"cluster": "fake"}, "throttle is missing"),
        ({"cluster": "fake", "options": {"throttel": "1MB/s"}}, "there is no option 'throttel'"),
    ):
        answered = sent(caller, path, body)
        assert (answered.status, words in answered.document["error"]) == (400, True), answered.text
    assert site.jobs.all() == []
    body = {"cluster": "fake", "digest": digest, "options": {"throttle": "1MB/s"}}
    told = outcome(caller, site, sent(caller, path, body))
    assert f"--digest={digest} --yes" in told["wrong"]


def test_run_is_changed_and_undone_through_the_api(caller: Visitor, site: Site) -> None:
    with carried_out(site) as run:
        answered = sent(caller, f"/runs/{run}/control", {"action": "pause", "moves_in": 3})
        assert answered.document == {"run": run, "asked": {"moves_in": 3, "paused": True}}
    assert sent(caller, f"/runs/{run}/control", {"action": "pause"}).status == 409
    arguments_of(site)
    told = outcome(caller, site, sent(caller, f"/runs/{run}/undo", {"as_far_as_possible": True}))
    assert f"undo --run={run} --yes --throttle=auto --as-far-as-possible" in told["wrong"]
    assert sent(caller, f"/runs/{run}/explode", {}).status == 404


def test_file_is_uploaded_as_the_body(caller: Visitor, site: Site) -> None:
    arguments_of(site)
    answered = sent(caller, "/plans/upload?name=moves.json", b'{"version": 1, "partitions": []}')
    assert "plan from-json" in outcome(caller, site, answered)["wrong"]
    assert sent(caller, "/plans/upload", b"  ").status == 400


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"options": []}', b"\xff", b"[" * 100_000])
def test_body_that_is_no_object_is_refused(caller: Visitor, site: Site, body: bytes) -> None:
    plan = site.store.all()[0].id
    for path in ("/plans", f"/plans/{plan}/rehearsals", f"/plans/{plan}/runs"):
        answered = sent(caller, path, body)
        assert answered.status in (400, 413), answered.text
        assert answered.document["error"]
    assert site.jobs.all() == []


def test_change_needs_an_operator_and_from_a_browser_the_csrf_token(caller: Visitor, site: Site) -> None:
    names = {"{plan}": site.store.all()[0].id, "{run}": site.books.all()[0].name, "{command}": "undo"}
    changes = [each.path for each in ROUTES if each.method != "GET"]
    assert len(changes) >= 6
    browser = Visitor(caller.app, runner=caller.runner).enter()
    viewer = {"authorization": f"Bearer {VIEWER}"}
    for path in changes:
        for name, value in names.items():
            path = path.replace(name, value)  # noqa: PLW2901
        assert sent(caller, path, {}, authorization="Bearer wrong").status == 401
        assert sent(caller, path, {}, **viewer).status == 403
        assert sent(browser, path, {}).status == 403
        assert sent(browser, path, {}, **{"x-csrf-token": "wrong"}).status == 403
        assert sent(browser, path, {}, x_csrf_token=browser.csrf).status not in (401, 403)
    for job in site.jobs.all():
        caller.until(lambda job=job: job.is_over)


def test_options_are_described_by_kind(caller: Visitor) -> None:
    described = caller.get(f"{PREFIX}/openapi.json").document

    def schema_of(path: str) -> Any:
        content = described["paths"][PREFIX + path]["post"]["requestBody"]["content"]
        return content["application/json"]["schema"]

    kinds = {each["properties"]["kind"]["const"] for each in schema_of("/plans")["oneOf"]}
    assert kinds == {each.name for each in command_line(("-b", "x:1"), "j", None).plans}
    assert schema_of("/plans/{plan}/runs")["properties"]["options"]["required"] == ["throttle"]
