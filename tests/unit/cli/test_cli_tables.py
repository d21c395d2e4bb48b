"""Tables with large numbers in narrow terminals and in pipes: no number is cut, no line is too long."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.text import Text

import restow
from restow.cli.app import run
from restow.cli.cluster.status_view import BrokerLine, Status, status_view
from restow.cli.pipeline import lab as pipeline_lab
from restow.cli.pipeline.pipeline_run import draw_skew
from restow.cli.runs.verdict_view import draw_verdict
from restow.cli.runs.view import picture
from restow.cli.shared.frame import console
from restow.cli.shared.tables import (
    BAR,
    LABEL,
    NAME,
    NUMBER,
    WORDS,
    Column,
    Grid,
    draw_rows,
    moment,
    word,
)
from restow.cli.topics import list_topics
from restow.model import Check, CheckOutcome, Copy, LiveBroker, Partition, Snapshot, Topic, Verdict
from restow.sizes import human_bytes
from restow.snapshot.text import dumps
from tests.unit.cli.test_cli_run_view import run_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

TB = 10**12
LONG = "a-topic-with-a-name-of-many-words-in-it-that-no-terminal-has-room-for"
NUMBERS = re.compile(r"(?<![\w.,])[\d][\d.,]*(?![\w])")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that draws on a terminal of some width, or in a pipe."""

    def call(draw: Callable[[Console], None], columns: int | None) -> str:
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", out)
        draw(console())
        out.seek(0)
        return out.read()

    return call


def status() -> Status:
    lines = tuple(
        BrokerLine(
            id=number,
            address=f"kafka.a-rather-long-name.of-a-host.example.com:{9092 + number}"
            if number != 3
            else None,
            rack="europe-west-one-availability-zone-b",
            is_controller=number == 1,
            replicas=1_234_567 + number,
            leaders=400_123 + number,
            in_sync=1_234_560 + number,
            size_bytes=288 * TB + number * TB,
        )
        for number in range(1, 6)
    )
    return Status(
        cluster_id="c",
        brokers=lines,
        topics=12_345,
        partitions=1_234_567,
        under_replicated=1_234,
        offline=56,
        not_preferred=7_890,
    )


def verdict() -> Verdict:
    checks = (
        Check(
            name="replicas",
            outcome=CheckOutcome.HOLDS,
            evidence=f"{1_234_567:,} partitions are where they should be",
        ),
        Check(
            name="no logs left",
            outcome=CheckOutcome.FAILS,
            evidence=f"{LONG} has 288,000,000,000,000 bytes on broker 4, 123,456 more partitions too",
            advice="wait until 288,000,000,000,000 bytes are gone, or look at /a/path/that/is/long",
        ),
    )
    return Verdict(subject="broker 4 may be stopped", checks=checks)


def skew() -> list[dict[str, object]]:
    causes = [{"topic": LONG, "partition": 12_345}, {"topic": "orders", "partition": 7}]
    return [
        {
            "cluster": "one",
            "dimension": "broker",
            "member": "4",
            "measure": measure,
            "total": 288e12,
            "unknown": 1_234,
            "share": 1.234,
            "variation": 0.567,
            "causes": causes,
        }
        for measure in ("size", "bytes_in", "leaders")
    ]


def lab() -> list[dict[str, object]]:
    numbers = ("skew_now", "skew", "lag_skew_now", "lag_skew", "cross_rack_now", "cross_rack")
    return [
        {
            "group": LONG,
            "assignor": "cooperative-sticky",
            "members": 1_234_567,
            "partitions": 7_654_321,
            **{name: 12_345.67 + at for at, name in enumerate(numbers)},
            "moved": 1_234_568,
            "most_lag": 123_456_789_012,
            "without_owner_s": 1_234_567.0,
            "replayed": 123_456_789_012,
            "replayed_without_owner_s": 1_234_567.5,
            "error": None,
        }
    ]


def every_kind() -> list[dict[str, object]]:
    at = datetime(2026, 11, 16, 7, 30, tzinfo=UTC)
    row = {
        "cluster": "c",
        "dir": "/var/lib/kafka/data/a/long/way/down",
        "now": 288 * TB,
        "at": at,
        "why": LONG,
    }
    return [row, row | {"now": None, "at": None}]


def draw_every_kind(page: Console) -> None:
    columns = (
        Column("dir", "log dir", word, left=True),
        Column("now", "on disk now", human_bytes),
        Column("at", "passes its limit", moment),
        Column("why", "because", word, left=True),
    )
    draw_rows(page, columns, every_kind())


def topics() -> tuple[Topic, ...]:
    partition = Partition(number=0, replicas=(1, 2, 3), isr=(1,), leader=1)
    return tuple(
        Topic(name=name, partitions=(partition,) * count) for name, count in ((LONG, 12_345), ("t", 1))
    )


DRAWINGS: dict[str, Callable[[Console], None]] = {
    "status": lambda page: page.print(status_view(status())),
    "verdict": lambda page: draw_verdict(page, verdict(), holds=False),
    "run": lambda page: page.print(picture(run_status())),
    "skew": lambda page: draw_skew(page, skew()),
    "lab": lambda page: pipeline_lab._draw(page, lab()),
    "topics": lambda page: list_topics._draw(page, topics()),
    "rows": draw_every_kind,
}


@pytest.mark.parametrize("columns", [80, 60, 40])
@pytest.mark.parametrize("name", DRAWINGS)
def test_tables_keep_numbers_whole_and_lines_fit_at_any_width(
    drawn: Callable[..., str], name: str, columns: int
) -> None:
    """A narrow terminal must show all numbers that a pipe gets."""
    whole, narrow = drawn(DRAWINGS[name], None), drawn(DRAWINGS[name], columns)
    assert max(map(len, narrow.splitlines())) <= columns
    lost = Counter(NUMBERS.findall(whole)) - Counter(NUMBERS.findall(narrow))
    assert not lost, narrow


@pytest.mark.parametrize("name", DRAWINGS)
def test_tables_cut_nothing_in_a_pipe(drawn: Callable[..., str], name: str) -> None:
    assert "…" not in drawn(DRAWINGS[name], None)


def test_table_in_a_pipe_has_one_line_for_each_row(drawn: Callable[..., str]) -> None:
    text = drawn(DRAWINGS["status"], None)
    assert len(text.splitlines()) == 1 + 5 + 1
    assert "kafka.a-rather-long-name.of-a-host.example.com:9093" in text


def grid() -> Grid:
    found = Grid(
        ("broker", LABEL), ("log dir", NAME), ("bytes before", NUMBER), ("", BAR), ("what to do", WORDS)
    )
    found.add_row("1", "/var/lib/kafka/data-1", "288 GB", "██████", "nothing at all, it is fine as it is")
    found.add_row("2", "/d", "1.0 GB", "█", "add a disk", style="red")
    return found


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            90,
            """\
broker  log dir                bytes before          what to do
1       /var/lib/kafka/data-1        288 GB  ██████  nothing at all, it is fine as it is
2       /d                           1.0 GB  █       add a disk
""",
        ),
        (
            60,
            """\
broker  log dir                 bytes  what to do
                               before
1       /var/lib/kafka/data-1  288 GB  nothing at all, it is
                                       fine as it is
2       /d                     1.0 GB  add a disk
""",
        ),
        (
            50,
            """\
broker  log dir        bytes  what to do
                      before
1       /var/l…ata-1  288 GB  nothing at all, it
                              is fine as it is
2       /d            1.0 GB  add a disk
""",
        ),
        (
            30,
            """\
broker: 1
  log dir: /var/lib/…ka/data-1
  bytes before: 288 GB
  what to do: nothing at all,
              it is fine as it
              is
broker: 2   log dir: /d
  bytes before: 1.0 GB
  what to do: add a disk
""",
        ),
    ],
)
def test_grid_shrinks_headings_then_bars_then_names_then_columns(
    drawn: Callable[..., str], columns: int, expected: str
) -> None:
    text = drawn(lambda page: page.print(grid()), columns)
    assert text.splitlines() == expected.splitlines()


def test_grid_as_lines_wraps_words_and_keeps_numbers_whole(drawn: Callable[..., str]) -> None:
    found = Grid(("", LABEL), ("", LABEL), ("", WORDS), header=False)
    found.add_row(Text("x", style="red"), "a name of some length", "words that take some room to say")
    assert drawn(lambda page: page.print(found), 30).splitlines() == [
        "x a name of some length",
        "  words that take some room to",
        "  say",
    ]


def test_grid_refuses_a_row_of_another_length() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Grid(("a", NAME), ("b", NUMBER)).add_row("x")


def test_no_module_uses_rich_tables() -> None:
    """Rich's own tables cut numbers."""
    root = Path(restow.__file__).parent
    users = [
        str(path.relative_to(root)) for path in root.rglob("*.py") if "rich.table" in path.read_text("utf-8")
    ]
    assert users == []


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """Return the file of a cluster with three brokers full of large partitions and an empty one."""
    partitions = tuple(
        Partition(
            number=number,
            replicas=(number % 3, (number + 1) % 3),
            isr=(number % 3, (number + 1) % 3),
            leader=number % 3,
            copies=tuple(
                Copy(broker=broker % 3, log_dir="/var/lib/kafka/data", size_bytes=288_123_456_789_012)
                for broker in (number, number + 1)
            ),
        )
        for number in range(24)
    )
    there = Snapshot(
        cluster_id="c",
        taken_ms=5,
        controller=0,
        brokers=tuple(LiveBroker(id=broker, host="h", port=1) for broker in range(4)),
        topics=(Topic(name=LONG, partitions=partitions),),
    )
    path = tmp_path / "now.json"
    path.write_text(dumps(there), encoding="utf-8")
    return str(path)


def test_commands_keep_numbers_whole_in_a_narrow_terminal(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands are plan, show and compare, on files."""
    plan = str(tmp_path / "plan.json")
    commands = (
        ("plan", "add-brokers", "3", "--snapshot", snapshot, "-o", plan),
        ("show", plan, "--moves", "--throttle", "123MB/s"),
        ("show", plan, "--snapshot", snapshot),
        ("plan", "compare", plan, plan),
        ("snapshot", "diff", snapshot, snapshot),
        ("groups", "assignors"),
    )
    for command in commands:
        said = {}
        for columns in (None, "80", "60", "40"):
            if columns is None:
                monkeypatch.delenv("COLUMNS", raising=False)
            else:
                monkeypatch.setenv("COLUMNS", columns)
            assert run(command) == 0
            said[columns] = capsys.readouterr().out
            copied = ("plan.json", "sha256:")  # commands to copy are not wrapped
            lines = [line for line in said[columns].splitlines() if not any(each in line for each in copied)]
            assert columns is None or max(map(len, lines)) <= int(columns), command
            lost = Counter(NUMBERS.findall(said[None])) - Counter(NUMBERS.findall(said[columns]))
            assert not lost, (command, columns)
        assert "…" not in said[None]
