"""Pictures of placements and groups, mark by mark."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from restow.cli.place.command import place_topic
from restow.cli.place.request import PlaceRequest
from restow.cli.place.view import draw_placement
from restow.cli.shared.drawing import PLAIN, PRETTY, bar, clean, cut, middle_out, ranges
from restow.sizes import count

if TYPE_CHECKING:
    from pathlib import Path

RACKS = """\
orders: 3 partitions × 3 replicas on 6 brokers in 3 racks

                                a     b     c
partition  leader  followers    0 1   2 3   4 5
        0       0  2 4          ● ·   ○ ·   ○ ·
        1       2  4 1          · ○   ● ·   ○ ·
        2       4  1 3          · ○   · ○   ● ·

● leader   ○ follower

Per broker
broker  rack  replicas                      leaders
     0  a            1  ██████                    1  ██████████████████
     1  a            2  ████████████              0
     2  b            2  ████████████              1  ██████████████████
     3  b            1  ██████                    0
     4  c            3  ██████████████████        1  ██████████████████
     5  c            0                            0

Verdict
  replicas  0 to 3 per broker, max/mean 2.00
  leaders   0 to 1 per broker, max/mean 2.00
  racks     every partition is in 3 of 3 racks
"""

GROUP = """\
range: 5 partitions of 2 topics × 2 members

member  count            partitions
a           3  ████████  t 0-1   u 0
b           2  █████▍    t 2   u 1

   t    u
   0    0
a  ●●·  ●·
b  ··●  ·●

● reads   · does not

Balance and movement
  partitions     2 to 3 per member          as even as can be
  balance score  1                          sum of differences over all pairs
"""


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_place_draws_brokers_by_rack(invoke) -> None:
    brokers = ("--topic", "orders", "--brokers", "0-1:a,2-3:b,4-5:c")
    arguments = (*brokers, "-p", "3", "-r", "3", "--start-index", "0")
    assert lines(invoke("place", *arguments).stdout) == lines(RACKS)


def test_assign_draws_members_and_partitions(invoke) -> None:
    result = invoke("groups", "assign", "-a", "range", "--topics", "t=3,u=2", "--members", "a,b")
    assert lines(result.stdout) == lines(GROUP)


def test_place_marks_new_partitions(invoke, tmp_path: Path) -> None:
    file = tmp_path / "now.json"
    file.write_text("[[0, 1], [1, 0]]")
    drawn = invoke("place", "--current", str(file), "--to", "3", "--brokers", "0-1").stdout
    assert "       +2       0  1            ● ○" in lines(drawn)
    assert "+ new partition" in drawn


def test_assign_marks_kept_gained_and_given_up_partitions(invoke, tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(
        "partitions: {t: 4}\nmembers: [{id: m1, owned: {t: [0, 1, 2, 3]}, generation: 1}, {id: m2}]\n"
    )
    assert strips(invoke("groups", "assign", str(file), "-a", "sticky").stdout) == ["m1  ●●○○", "m2  ··◆◆"]
    assert strips(invoke("groups", "assign", str(file)).stdout) == ["m1  ●●○○", "m2  ····"]


def strips(drawn: str) -> list[str]:
    return [line for line in lines(drawn) if line.startswith("m") and set(line[4:]) <= set("●○◆·")]


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
@pytest.mark.parametrize(("brokers", "replication_factor"), [(1, 1), (6, 3), (30, 3), (300, 5)])
def test_placement_fits_any_width(width: int, brokers: int, replication_factor: int) -> None:
    request = PlaceRequest(
        brokers=f"0-{brokers - 1}",
        racks="a,rack-b,a-long-rack-name",
        partitions=50,
        replication_factor=replication_factor,
    )
    out = io.StringIO()
    draw_placement(Console(file=out, width=width, highlight=False), place_topic(request), rows=9)
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert "41 partitions left out" in out.getvalue() or width < 60
    if width >= 80:
        assert ("brokers not drawn" in out.getvalue()) == (brokers == 300)


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_group_fits_any_width(invoke, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    members = ",".join(f"a-member-with-quite-a-name-{number}" for number in range(60))
    drawn = invoke(
        "groups", "assign", "--topics", "t=1000,a-long-topic-name=2,u=70", "--members", members
    ).stdout
    assert max(map(len, drawn.splitlines())) <= int(columns)
    assert "36 members left out" in " ".join(drawn.split())
    assert "not drawn" in drawn


def test_rows_zero_draws_all_rows(invoke) -> None:
    arguments = ("place", "--brokers", "0-2", "-p", "60", "-r", "2", "--start-index", "0")
    assert "left out" in invoke(*arguments).stdout
    assert "left out" not in invoke(*arguments, "--rows", "0").stdout


def test_pictures_clean_hostile_names(invoke) -> None:
    drawn = invoke("groups", "assign", "--topics", "\x1b[31mred=1", "--members", "a\nb").stdout
    assert "\x1b" not in drawn
    assert "\\x1b[31mred" in drawn
    assert "a\\x0ab" in drawn


def test_pictures_show_markup_in_names_as_text(invoke) -> None:
    assert (
        "[bold]t[/bold]"
        in invoke("groups", "assign", "--topics", "[bold]t[/bold]=1", "--members", "a").stdout
    )


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([2, 0, 1], "0-2"), ([0, 1, 2, 3, 7], "0-3,7"), ([1, 3, 5], "1,3,5")],
)
def test_ranges_merges_consecutive_numbers(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def test_ranges_counts_the_rest_of_a_long_list() -> None:
    assert ranges([0, 2, 4, 5, 6], most=2) == "0,2 and 3 more"


def test_bar_grows_with_its_value() -> None:
    assert [bar(value, 8, 2, PRETTY) for value in range(9)] == [
        "",
        "▎",
        "▌",
        "▊",
        "█",
        "█▎",
        "█▌",
        "█▊",
        "██",
    ]
    assert [bar(value, 4, 2, PLAIN) for value in range(5)] == ["", "#", "#", "#", "##"]
    assert bar(1, 10_000, 10, PRETTY) == "▏"
    assert bar(0, 0, 10, PRETTY) == ""


@pytest.mark.parametrize("total", [0, 1, 5, 6, 7, 100])
def test_middle_out_leaves_out_the_middle(total: int) -> None:
    head, tail = middle_out(total, 6)
    shown = [*head, *tail]
    assert shown == sorted(set(shown))
    assert len(shown) == min(total, 6)
    assert total == 0 or (shown[0], shown[-1]) == (0, total - 1)


def test_count_cut_and_clean_format_short_texts() -> None:
    assert [count(1, "broker"), count(2, "broker"), count(1200, "partition")] == [
        "1 broker",
        "2 brokers",
        "1,200 partitions",
    ]
    assert cut("consumer-17", 6, PRETTY) == "con…17"
    assert cut("short", 6, PRETTY) == "short"
    assert cut("consumer", 1, PLAIN) == "c"
    assert clean("plain ünïcode") == "plain ünïcode"
