"""`restow ui --demo` in a real browser: every page of the story, both themes, keyboard, print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.served import served_pages
from tests.browser.story import check_accessibility, operator_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    page.set_viewport_size({"width": 794, "height": 1123})  # A4
    page.emulate_media(media="print", color_scheme="dark")
    for address in addresses(page, pages):
        page.goto(pages.address + address)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(0, 0, 0)"
        cut = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollHeight > e.clientHeight + 1)"
        assert page.evaluate(f"{cut}.length") == 0, address
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{address} is {wide} px wider than paper"


def test_lists_are_searched_sorted_and_turned(pages: ServedPages, page: Any) -> None:
    def rows(part: str = "main") -> list[str]:
        return [each.split("\t")[0] for each in page.locator(f"{part} tbody tr").all_inner_texts()]

    page.goto(f"{pages.address}/topics")
    page.fill("input[name=search]", "ORD")
    page.click("button:has-text('Search')")
    page.wait_for_url("**search=ORD*")
    assert rows() == ["orders"]
    page.goto(f"{pages.address}/groups")
    page.fill("input[name=search]", "bill")
    page.click("button:has-text('Search')")
    page.wait_for_url("**search=bill*")
    assert rows() == ["billing"]
    page.goto(f"{pages.address}/brokers")
    assert rows() == ["0", "1", "2", "3", "4", "5"]
    page.select_option("select[name=sort]", "replicas")
    page.click("button:has-text('Show')")
    page.wait_for_url("**sort=replicas*")
    assert rows()[0] == "0"
    assert sorted(rows()) == ["0", "1", "2", "3", "4", "5"] != rows()
    plan, rehearsal = addresses(page, pages)[10:12]
    page.goto(pages.address + plan)
    every = rows("#moves")
    page.fill("#moves input[name=topic]", "clicks")
    page.fill("#moves input[name=broker]", "4")
    page.click("#moves button:has-text('Search')")
    page.wait_for_url("**topic=clicks*")
    assert set(rows("#moves")) < {each for each in every if each.startswith("clicks-")}
    page.goto(pages.address + rehearsal)
    first = page.locator("main section:last-of-type tbody tr").all_inner_texts()
    page.click(".pager >> text=next")
    page.wait_for_selector("text=page 2 of 2")
    assert not set(first) & set(page.locator("main section:last-of-type tbody tr").all_inner_texts())


def test_sliders_fill_in_the_throttle_and_the_hour(pages: ServedPages, page: Any) -> None:
    page.goto(pages.address + addresses(page, pages)[10])
    start = page.locator("input[data-shows=rehearse-start]")
    assert start.get_attribute("aria-valuetext") == "now"
    for hour in ("00:00", "01:00"):
        start.press("ArrowRight")
        assert page.input_value("#rehearse-start") == start.get_attribute("aria-valuetext") == hour
    page.locator("input[data-shows=rehearse-throttle]").press("End")
    assert page.input_value("#rehearse-throttle") == "none"


def test_every_page_of_the_story_is_read_without_scripts(pages: ServedPages, running_browser: Any) -> None:
    context = running_browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{pages.address}/")
    page.fill("input[name=token]", pages.tokens["operator"])
    page.click("button:has-text('Enter')")
    page.wait_for_selector("text=Rack a")
    for address in addresses(page, pages):
        page.goto(pages.address + address)
        assert "Without scripts" in page.inner_text("body")
        assert not page.locator("[data-scripts]").locator("visible=true").count()
        assert "new" in address or page.locator("main td").count(), address
    context.close()


def test_plan_file_of_a_gigabyte_is_refused_on_the_page(
    pages: ServedPages, running_browser: Any, tmp_path: Path
) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(10**9)
    context = running_browser.new_context()
    page = pages.enter(context)
    page.goto(f"{pages.address}/plans")
    plans = page.locator("section:has-text('Made here') tbody tr").count()
    page.set_input_files("input[type=file]", tmp_path / "large.json")
    page.click("button:has-text('Upload')")
    page.wait_for_selector("#live:has-text('larger than'), #live:has-text('too large')")
    page.reload()
    assert page.locator("section:has-text('Made here') tbody tr").count() == plans
    context.close()


def test_open_page_says_that_its_session_has_ended(pages: ServedPages, running_browser: Any) -> None:
    context = running_browser.new_context()
    page = pages.enter(context)
    another = context.new_page()
    another.goto(f"{pages.address}/topics")
    another.click("button:has-text('Leave')")
    another.wait_for_url("**/login")
    page.wait_for_selector("#live:has-text('Your session has ended')")
    page.reload()
    assert page.url.endswith("/login")
    context.close()


def test_session_that_has_ended_leads_to_the_login(pages: ServedPages, page: Any) -> None:
    page.goto(f"{pages.address}/topics")
    page.click("button:has-text('Leave')")
    page.wait_for_url("**/login")
    page.goto(f"{pages.address}/runs")
    assert page.url.endswith("/login")
