"""Pictures and pages: their marks, highlights, and escaped names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from restow.html.page import ReportPage, Section, Tile, page, table
from restow.html.plots import Bar, Line, Moment, amount, bars, changes, lines
from restow.pipeline.report import Found, report_of

START = datetime(2026, 1, 1, tzinfo=UTC)
EVIL = "<script>alert('x')</script>"


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0, "B", "0 B"),
        (999, "B", "999 B"),
        (1500, "B", "1.5 kB"),
        (2_340_000, "B/s", "2.3 MB/s"),
        (123e9, "B", "123 GB"),
        (12, "", "12"),
        (1234, "", "1,234"),
        (3_400_000, "", "3.4 M"),
        (float("nan"), "B", "–"),
    ],
)
def test_amount_scales_values(value: float, unit: str, words: str) -> None:
    assert amount(value, unit) == words


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text.partition("<p class='legend'>")[0])  # noqa: S314  (our own text)


def kinds(picture: ET.Element, tag: str) -> list[str]:
    return [each.get("class", "") for each in picture.iter(f"{{http://www.w3.org/2000/svg}}{tag}")]


def test_bars_highlight_members_outside_the_band() -> None:
    rows = [Bar(name=str(value), value=value, share=100.0) for value in (150.0, 105.0, 60.0)]
    found = [each for each in kinds(drawn(bars(rows, band=0.09)), "rect") if each.startswith("bar")]
    assert found == ["bar much", "bar fine", "bar little"]
    assert "bar plain" in bars([Bar(name="a", value=1.0)])


def test_lines_stay_in_their_frame_and_mark_moments() -> None:
    points = tuple((float(second), second * 10.0) for second in range(100))
    picture = lines([Line(name=EVIL, points=points)], moments=[Moment(at=50, name="killed", bad=True)])
    assert EVIL not in picture
    (line,) = [each for each in drawn(picture).iter() if each.tag.endswith("polyline")]
    where = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
    assert all(0 <= x <= 760 and 0 <= y <= 240 for x, y in where)
    assert "moment bad" in picture
    assert lines([]) == ""


def test_line_has_a_gap_where_values_are_unknown() -> None:
    points = ((0.0, None), (1.0, 5.0), (2.0, 5.0), (3.0, None), (4.0, 5.0), (5.0, None))
    picture = drawn(lines([Line(name="in", points=points)]))
    stretches = [each.get("points", "") for each in picture.iter() if each.tag.endswith("polyline")]
    assert [len(each.split()) for each in stretches] == [2, 1]
    assert kinds(picture, "circle") == ["dot c0"], "a single point is a dot"
    heights = {pair.split(",")[1] for each in stretches for pair in each.split()}
    assert len(heights) == 1, "a constant load is level"
    assert not kinds(drawn(lines([Line(name="in", points=((0.0, None), (1.0, None)))])), "polyline")


def test_bars_draw_no_bar_for_an_unknown_value() -> None:
    picture = bars([Bar(name="a", value=None, share=5.0), Bar(name="b", value=5.0, share=5.0)])
    assert "not known" in picture
    assert [each for each in kinds(drawn(picture), "rect") if each.startswith("bar")] == ["bar fine"]


def test_names_of_moments_do_not_cover_each_other() -> None:
    moments = [Moment(at=float(at), name=f"something at {at}") for at in (90, 91, 92, 10)]
    picture = lines([Line(name="l", points=((0.0, 1.0), (100.0, 1.0)))], moments=moments)
    heights = re.findall(r"<text class='moment' x='[\d.]+' y='([\d.]+)'", picture)
    assert len(heights) == 4
    assert len(set(heights[:3])) == 3


def test_pictures_without_data_can_be_drawn() -> None:
    for picture in (
        bars([]),
        changes([]),
        bars([Bar(name="a", value=0.0, share=0.0)]),
        changes([("a", 0, 0)]),
    ):
        drawn(picture)


def test_bars_have_a_colour_where_no_style_gives_them_one() -> None:
    picture = drawn(changes([("a", 2.0, 1.0)]))
    fills = [each.get("fill") for each in picture.iter() if each.tag.endswith("rect")]
    assert len(set(fills)) == 2
    assert all(fill and fill.startswith("#") for fill in fills)


def test_table_counts_the_rows_that_it_leaves_out() -> None:
    text = table(("n",), [(number,) for number in range(7)], most=5)
    assert text.count("<tr>") == 6
    assert "and 2 more" in text
    assert "more" not in table(("n",), [(1,)], most=1)


def test_page_escapes_names() -> None:
    section = Section(
        title=EVIL, note=EVIL, parts=(table((EVIL,), [(EVIL,)]), bars([Bar(name=EVIL, value=1)]))
    )
    text = page(
        ReportPage(
            title=EVIL, lead=EVIL, tiles=(Tile(value=EVIL, name=EVIL),), sections=(section,), footer=EVIL
        )
    )
    assert "<script" not in text
    assert not re.search(r"(?:src|href)=|url\(|@import", text), "a page needs nothing from elsewhere"
    assert "prefers-color-scheme: dark" in text


def skew(dimension: str, members: dict[str, float], measure: str = "size") -> list[dict[str, Any]]:
    mean = sum(members.values()) / len(members)
    return [
        {"cluster": "c", "dimension": dimension, "measure": measure, "member": name, "total": total}
        | {"mean": mean, "share": total / mean, "max_share": max(members.values()) / mean, "variation": 0.1}
        | {"unknown": 0, "causes": [{"topic": "orders", "partition": 3, "value": total}]}
        for name, total in members.items()
    ]


def test_report_shows_the_worst_broker_and_its_causes() -> None:
    traffic = [
        {"cluster": "c", "at": START + timedelta(minutes=n), "bytes_in": 5.0 * n, "bytes_out": None}
        for n in range(5)
    ]
    found = Found(
        skew=[
            *skew("broker", {"0": 300.0, "1": 100.0, "10": 100.0, "2": 100.0}),
            *skew("rack", {"a": 1.0, "b": 2.0}),
        ],
        traffic=traffic,
    )
    text = page(report_of(found, title="t", lead="l"))
    assert "2.00 ×" in text
    assert "size of broker 0, times its share" in text
    assert "orders-3" in text
    names = re.findall(r">broker (\d+)</text>", text)
    assert names == ["0", "1", "2", "10"], "by number, not by letter"
    assert "All of it over time" in text
    assert "rack a" in text


def test_report_gives_reasons_for_missing_forecasts_and_values() -> None:
    row = {"cluster": "c", "measure": "disk", "broker": 1, "log_dir": "/d", "now": None, "limit": None}
    row |= dict.fromkeys(("growth", "passes", "soonest", "latest", "why_soonest", "why_latest"))
    row |= {"why": "it did not answer"}
    unknown = skew("broker", {"0": 300.0, "1": 100.0}, "bytes_in")
    unknown[1] |= {"total": None, "share": None, "unknown": 4}
    text = page(report_of(Found(forecast=[row], skew=unknown), title="t", lead="l"))
    assert "it did not answer" in text
    assert "not known" in text
    assert "None" not in text


def test_report_of_brokers_that_have_nothing_is_a_page() -> None:
    nothing = [row | {"total": 0.0, "mean": 0.0, "share": None} for row in skew("broker", {"0": 1, "1": 1})]
    text = page(report_of(Found(skew=nothing), title="t", lead="l"))
    assert "times its share" not in text
    assert ">2</" in text


def test_empty_report_is_a_page() -> None:
    assert "0 B" in page(report_of(Found(), title="t", lead="l"))
