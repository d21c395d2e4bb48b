"""What the server of pages refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.errors import InvalidInput
from restow.ui.app import application
from restow.ui.safety import UPLOAD_BYTES, Refused
from restow.ui.server import check_address
from restow.ui.sessions import Sessions, TooManyAttempts, UiRole
from restow.ui.site import UiSettings
from tests.clock import SleepingClock
from tests.unit.ui.visitor import OPERATOR, VIEWER, Visitor, a_site, a_snapshot, a_visitor

if TYPE_CHECKING:
    from pathlib import Path

PAGES = (
    "/",
    "/brokers",
    "/broker?id=1",
    "/topics",
    "/topic?name=orders",
    "/runs",
    "/partition?topic=orders&partition=0",
)
EVIL = "<script>alert('x')</script>\"&"


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:8080", "127.0.0.1:9", "", "127.0.0.1"]
)
def test_request_for_another_host_is_refused(tmp_path: Path, host: str) -> None:
    visitor = a_visitor(tmp_path)
    visitor.host = host
    for address in ("/", "/login", "/api/v1/cluster", "/static/style.css"):
        assert visitor.get(address).status == 421


@pytest.mark.parametrize("host", ["localhost:8080", "LOCALHOST:8080", "[::1]:8080", "ops.example.com:8080"])
def test_request_for_a_name_of_ours_is_answered(tmp_path: Path, host: str) -> None:
    visitor = a_visitor(tmp_path, names=("ops.example.com",))
    visitor.host = host
    assert visitor.get("/").status == 200


@pytest.mark.parametrize("address", PAGES)
def test_page_without_a_session_leads_to_the_login(tmp_path: Path, address: str) -> None:
    answered = Visitor(application(a_site(tmp_path))).get(address)
    assert (answered.status, answered.headers["location"]) == (303, "/login")
    assert "orders" not in answered.text


@pytest.mark.parametrize("address", ["/api/v1/cluster", "/api/v1/runs", "/metrics", "/events?page=cluster"])
@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic eDp5", f"Bearer {OPERATOR}x"])
def test_data_without_a_token_is_refused(tmp_path: Path, address: str, authorization: str) -> None:
    visitor = Visitor(application(a_site(tmp_path)))
    assert visitor.get(address, authorization=authorization).status == 401
    assert "error" in visitor.get(address, authorization=authorization).document


def test_program_with_a_token_gets_data(tmp_path: Path) -> None:
    visitor = Visitor(application(a_site(tmp_path)))
    assert visitor.get("/api/v1/cluster", authorization=f"Bearer {VIEWER}").document["partitions"] == 4


def test_cookie_is_kept_from_scripts_and_other_sites(tmp_path: Path) -> None:
    answered = Visitor(application(a_site(tmp_path))).post("/login", {"token": VIEWER})
    attributes = answered.headers["set-cookie"].lower()
    assert "httponly" in attributes
    assert "samesite=strict" in attributes
    assert VIEWER not in attributes
    tls = application(a_site(tmp_path, certificate="c", key="k"))
    assert "secure" in Visitor(tls).post("/login", {"token": VIEWER}).headers["set-cookie"].lower()


def test_wrong_token_opens_no_session(tmp_path: Path) -> None:
    visitor = Visitor(application(a_site(tmp_path)))
    answered = visitor.post("/login", {"token": "guess"})
    assert (answered.status, visitor.cookie) == (403, "")


def test_many_wrong_tokens_lock_the_login_for_a_while() -> None:
    clock = SleepingClock()
    sessions = Sessions(clock, {OPERATOR: UiRole.OPERATOR})
    for number in range(20):
        assert sessions.enter(f"guess {number}") is None
    with pytest.raises(TooManyAttempts):
        sessions.enter(OPERATOR)
    clock.now_s += 61
    assert sessions.enter(OPERATOR) is not None


def test_session_ends_after_hours_without_a_request() -> None:
    clock = SleepingClock()
    sessions = Sessions(clock, {OPERATOR: UiRole.OPERATOR})
    cookie = sessions.enter(OPERATOR)
    assert cookie is not None
    clock.now_s += 11 * 3600
    assert sessions.of_cookie(cookie) is not None
    clock.now_s += 13 * 3600
    assert sessions.of_cookie(cookie) is None


def test_leaving_ends_the_session(tmp_path: Path) -> None:
    visitor = a_visitor(tmp_path)
    cookie = visitor.cookie
    assert visitor.post("/logout", {"csrf": visitor.csrf}).status == 303
    visitor.cookie = cookie
    assert visitor.get("/").status == 303


@pytest.mark.parametrize("csrf", ["", "wrong"])
def test_change_without_the_token_of_the_page_is_refused(tmp_path: Path, csrf: str) -> None:
    visitor = a_visitor(tmp_path)
    assert visitor.post("/logout", {"csrf": csrf}).status == 403
    assert visitor.get("/").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example.com"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_change_from_another_page_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    visitor = a_visitor(tmp_path)
    assert visitor.post("/logout", {"csrf": visitor.csrf}, **headers).status == 403


def test_every_answer_forbids_foreign_scripts_and_frames(tmp_path: Path) -> None:
    visitor = a_visitor(tmp_path)
    for address in (*PAGES, "/nothing-here", "/api/v1/cluster", "/metrics", "/static/script.js"):
        headers = visitor.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "'unsafe-inline'" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("address", [*PAGES, "/topics?search=script", "/events?page=nothing", "/nothing"])
def test_names_from_the_cluster_are_never_markup(tmp_path: Path, address: str) -> None:
    shown = a_snapshot(cluster_id=EVIL, name=EVIL)
    shown = replace(
        shown,
        brokers=tuple(replace(each, rack=EVIL, host=EVIL) for each in shown.brokers),
        hidden_topics=(EVIL,),
        denied=(EVIL,),
    )
    quoted = "%3Cscript%3Ealert%28%27x%27%29%3C%2Fscript%3E%22%26"
    answered = a_visitor(tmp_path, shown).get(address.replace("orders", quoted))
    assert "<script>alert" not in answered.text
    assert "alert('x')" not in answered.text


@pytest.mark.parametrize("name", ["..%2Fserver.py", "../server.py", "%2e%2e/app.py", "app.py", ""])
def test_only_our_own_static_files_are_served(tmp_path: Path, name: str) -> None:
    visitor = a_visitor(tmp_path)
    assert visitor.get(f"/static/{name}").status == 404


@pytest.mark.parametrize("name", ["..", "../../x", "..%2F..%2Fetc", "%00", "a" * 10_000])
def test_run_outside_the_journals_is_not_found(tmp_path: Path, name: str) -> None:
    visitor = a_visitor(tmp_path)
    assert visitor.get(f"/runs/{name}").status == 404
    assert visitor.get(f"/api/v1/runs/{name}").status == 404


def test_oversized_body_is_refused_by_its_announced_length(tmp_path: Path) -> None:
    visitor = a_visitor(tmp_path)
    for said in (str(10**10), "-1", "many"):
        answered = visitor.send("POST", "/logout", [b""], {"content-length": said})
        assert answered.status == 413


def test_oversized_body_is_refused_while_it_is_read(tmp_path: Path) -> None:
    visitor = a_visitor(tmp_path)
    endless = [b"x" * 10_000] * 10
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert visitor.send("POST", "/logout", endless, form).status == 413
    assert UPLOAD_BYTES < 2**30


def test_body_that_does_not_arrive_is_refused(tmp_path: Path) -> None:
    guard = replace(application(a_site(tmp_path)), body_part_s=0.01)

    async def never() -> None:
        await asyncio.Event().wait()

    async def read() -> None:
        from starlette.datastructures import Headers

        await guard._limited(never, 10, Headers({}))()  # type: ignore[arg-type]

    with pytest.raises(Refused) as refused:
        asyncio.run(read())
    assert refused.value.status == 408


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "ops.example.com"])  # noqa: S104
def test_address_of_other_machines_needs_tls(host: str) -> None:
    open_to_all = UiSettings(tokens={}, journal="", host=host)
    with pytest.raises(InvalidInput, match="--tls-certificate"):
        check_address(open_to_all)
    check_address(replace(open_to_all, certificate="c.pem", key="k.pem"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    check_address(UiSettings(tokens={}, journal="", host=host))


def test_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="belong together"):
        check_address(UiSettings(tokens={}, journal="", certificate="c.pem"))


def test_junk_in_addresses_is_answered_with_a_sentence(tmp_path: Path) -> None:
    visitor = a_visitor(tmp_path)
    for address in ("/broker?id=x", "/broker", "/topics?page=-1", "/topic", f"/topics?search={'x' * 600}"):
        answered = visitor.get(address)
        assert answered.status == 400
        assert "<p class='bad'>" in answered.text
