"""`restow ui --demo` in a real browser: every page of the story, both themes, keyboard, print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.served import served_pages
from tests.browser.story import check_accessibility, operator_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.served import ServedPages


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPages]:
    with served_pages(tmp_path_factory.mktemp("demo"), "--demo") as found:
        yield found


@pytest.fixture
def page(pages: ServedPages, running_browser: Any) -> Iterator[Any]:
    with operator_page(pages, running_browser) as found:
        yield found


def addresses(page: Any, pages: ServedPages) -> list[str]:
    """Return every kind of page that the story has."""

    def asked(path: str) -> Any:
        return page.request.get(f"{pages.address}/api/v1{path}").json()

    plan = next(each for each in asked("/plans")["plans"] if each["title"] == "plan balance")
    other = next(each for each in asked("/plans")["plans"] if each["title"] == "plan drain")
    run = asked("/runs")["runs"][-1]
    return [
        "/",
        "/brokers",
        "/broker?id=1",
        "/topics?sort=bytes",
        "/topic?name=orders",
        "/partition?topic=orders&partition=0",
        "/groups?sort=lag",
        "/group?name=billing",
        "/group?name=recommendations",
        "/plans",
        f"/plans/{plan['plan']}",
        f"/plans/{plan['plan']}/rehearsals/{plan['rehearsals'][0]}",
        f"/plans/compare?first={plan['plan']}&second={other['plan']}",
        "/plans/new?kind=drain",
        "/runs",
        f"/runs/{run['run']}",
        "/audit",
    ]


def test_story_has_every_page_and_all_are_accessible_in_both_themes(pages: ServedPages, page: Any) -> None:
    for address in addresses(page, pages):
        page.goto(pages.address + address)
        if "/compare" not in address:  # its plans do not start from the same replicas, and it says so
            assert page.query_selector("main .bad:not(.tile)") is None, address
        check_accessibility(page)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{address} is {wide} px too wide"


def test_pages_fit_a_telephone(pages: ServedPages, page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for address in addresses(page, pages):
        page.goto(pages.address + address)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{address} is {wide} px too wide"


def test_keyboard_alone_is_enough_to_plan_and_rehearse(pages: ServedPages, page: Any) -> None:
    def tab_to(words: str) -> None:
        for _ in range(200):
            page.keyboard.press("Tab")
            focused = page.evaluate("document.activeElement.innerText || document.activeElement.id")
            if words in focused:
                return
        raise AssertionError(f"Tab does not reach {words!r}")

    page.goto(f"{pages.address}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"{pages.address}/plans")
    tab_to("leaders")
    page.keyboard.press("Enter")
    page.wait_for_url("**/plans/new?kind=leaders")
    tab_to("Make the plan")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/plans/2" in url)
    page.wait_for_selector("h2:has-text('Moves:'), main .bad")


def test_plan_of_the_story_can_be_rehearsed_but_not_run(pages: ServedPages, page: Any) -> None:
    told = page.request.get(f"{pages.address}/api/v1/plans").json()["plans"]
    plan = next(each["plan"] for each in told if each["title"] == "plan change-rf")  # it was not run
    page.goto(f"{pages.address}/plans/{plan}")
    assert page.query_selector("#approve") is None
    page.fill("#rehearse textarea[name=what_if]", "broker 2 dies at 50%")
    page.click("button:has-text('Rehearse it')")
    page.wait_for_selector("h2:has-text('If broker 2 dies at 50%')")


def test_pages_print_without_navigation_and_forms(pages: ServedPages, page: Any) -> None:
    page.goto(pages.address + addresses(page, pages)[10])
    page.emulate_media(media="print")
    assert page.is_visible("h1")
    assert page.is_visible("table >> nth=0")
    for hidden in ("header nav", "#rehearse form", ".pager"):
        found = page.query_selector(hidden)
        assert found is None or not found.is_visible()
    assert page.pdf()[:4] == b"%PDF"


def test_session_that_has_ended_leads_to_the_login(pages: ServedPages, page: Any) -> None:
    page.goto(f"{pages.address}/topics")
    page.click("button:has-text('Leave')")
    page.wait_for_url("**/login")
    page.goto(f"{pages.address}/runs")
    assert page.url.endswith("/login")
