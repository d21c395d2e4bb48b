"""No text from outside acts on the terminal: escapes, returns, bells, C1 codes, bidi controls."""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Group
from rich.live import Live
from rich.text import Text

from restow.cli.app import run
from restow.cli.runs.reassign import reassign
from restow.cli.shared.drawing import clean, clean_lines
from restow.cli.shared.frame import CleanFormatter, console
from restow.model import Copy, LiveBroker, Move, Partition, Plan, Snapshot, Topic, TopicPartition
from restow.plan.files.text import dumps as dumps_plan
from restow.snapshot.text import dumps as dumps_snapshot
from tests.often import of_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVIL = "e\x1b[2J\rv\x07\x08\x9b31mi\u202e\u2066\x85\u2028l"


@pytest.fixture
def said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Return a function that runs a command and returns its output; it fails on any control character."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> str:
        run(arguments)
        told = capsys.readouterr()
        text = told.out + told.err
        assert [char for char in text if not char.isprintable() and char != "\n"] == [], text
        return text

    return call


def snapshot(name: str = "orders") -> Snapshot:
    copies = tuple(Copy(broker=broker, log_dir=f"/{name}", size_bytes=1000) for broker in (0, 1))
    partition = Partition(number=0, replicas=(0, 1), isr=(0,), leader=0, copies=copies)
    brokers = tuple(LiveBroker(id=broker, host=name, port=1, rack=name) for broker in range(3))
    return Snapshot(
        cluster_id="c",
        taken_ms=5,
        controller=0,
        brokers=brokers,
        topics=(Topic(name=name, partitions=(partition,)),),
    )


def plan(name: str = "orders") -> Plan:
    move = Move(
        partition=TopicPartition(name, 0), before=(0, 1), after=(0, 2), size_bytes=1000, reason=f"for {name}"
    )
    return Plan(cluster_id="c", created_ms=5, moves=(move,), title=f"to please {name}")


KAFKA_JSON = {
    "version": 1,
    "partitions": [{"topic": "orders", "partition": 0, "replicas": [0, 2], "log_dirs": ["/a", "any"]}],
}
LOAD = {
    "restow_load": 1,
    "cluster_id": "c",
    "made_ms": 5,
    "resources": {"cpu": {"capacity": {"0": 1.0}}},
    "partitions": [{"topic": "orders", "partition": 0, "cpu": [0.2, 0.1]}],
}
GROUP = {
    "partitions": {"t": 3},
    "assignor": "sticky",
    "members": [{"id": "m", "topics": ["t"], "owned": {"t": [0]}, "generation": 1, "rack": "r"}],
}


def spoiled(document: Any) -> Iterator[Any]:
    """Yield copies of the document, each with one key or value made hostile.

    The elements of a list are alike: without `make test-full`, only the first is made hostile.
    """
    for path in _paths(document, ()):
        for is_key in (False, True):
            made = copy.deepcopy(document)
            place = made
            for step in path[:-1]:
                place = place[step]
            if not is_key:
                place[path[-1]] = EVIL
            elif isinstance(place, dict):
                place[EVIL] = place.pop(path[-1])
            else:
                continue
            yield made


def _paths(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(node, list):
        node = dict(enumerate(node[: of_many(len(node), often=1)]))
    items = node.items() if isinstance(node, dict) else ()
    for key, value in items:
        yield from _paths(value, (*path, key))


FILES: dict[str, tuple[Callable[[], Any], tuple[tuple[str, ...], ...]]] = {
    "plan": (
        lambda: json.loads(dumps_plan(plan())),
        (("show", "hostile.json", "--moves"), ("plan", "compare", "fine-plan.json", "hostile.json")),
    ),
    "snapshot": (
        lambda: json.loads(dumps_snapshot(snapshot())),
        (
            ("snapshot", "diff", "fine.json", "hostile.json"),
            ("show", "fine-plan.json", "--snapshot", "hostile.json"),
        ),
    ),
    "kafka": (
        lambda: KAFKA_JSON,
        (
            ("plan", "from-json", "hostile.json", "--snapshot", "fine.json"),
            ("place", "--current", "hostile.json", "--to", "3", "--brokers", "0-2"),
        ),
    ),
    "load": (lambda: LOAD, (("plan", "balance", "--snapshot", "fine.json", "--load", "hostile.json"),)),
    "group": (lambda: GROUP, (("groups", "assign", "hostile.json"),)),
}


@pytest.mark.parametrize("kind", FILES)
def test_hostile_text_anywhere_in_a_file_does_not_reach_the_terminal(
    said: Callable[..., str], kind: str
) -> None:
    """This holds for files that are drawn and for files that are refused."""
    Path("fine.json").write_text(dumps_snapshot(snapshot()), encoding="utf-8")
    Path("fine-plan.json").write_text(dumps_plan(plan()), encoding="utf-8")
    make, commands = FILES[kind]
    for document in spoiled(make()):
        Path("hostile.json").write_text(json.dumps(document), encoding="utf-8")
        for command in commands:
            said(*command)


def test_hostile_names_are_drawn_with_their_controls_spelt_out(said: Callable[..., str]) -> None:
    """The names must be in the output, because an empty output would pass the other tests."""
    Path("plan.json").write_text(dumps_plan(plan(EVIL)), encoding="utf-8")
    text = said("show", "plan.json", "--moves")
    assert "\\x1b[2J" in text
    assert "\\u202e" in text


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize(
    "line",
    [b"{0}", b"security.protocol={0}", b"{0}=1", b"sasl.jaas.config={0}", b"ssl.keystore.location=/{0}"],
)
def test_hostile_text_in_properties_does_not_reach_the_terminal(
    said: Callable[..., str], line: bytes, end: bytes
) -> None:
    raw = EVIL.encode()
    for value in (raw, raw.decode().encode("utf-16"), b"\xff\x1b[2J"):
        Path("client.properties").write_bytes(line.replace(b"{0}", value) + end)
        said("topics", "list", "-b", "127.0.0.1:nowhere", "--command-config", "client.properties")


@pytest.mark.parametrize(
    "arguments",
    [
        (EVIL,),
        (f"--{EVIL}",),
        ("plan", EVIL),
        ("plan", "drain", EVIL, "--snapshot", "none"),
        ("plan", "balance", "--snapshot", EVIL),
        ("plan", "balance", "--snapshot", "none", "--max-moves", EVIL),
        ("show", EVIL),
        ("show", "plan.json", "--throttle", EVIL),
        ("place", "--brokers", EVIL, "-p", "1", "-r", "1"),
        ("place", "--brokers", "0-2", "--topic", EVIL, "-p", "1", "-r", "1"),
        ("groups", "assign", "--topics", f"{EVIL}=2", "--members", EVIL),
        ("topics", "list", "-b", EVIL),
        ("verify", EVIL, "-b", "127.0.0.1:1"),
        ("reassign", "--verify", "--bootstrap-server", EVIL, "--reassignment-json-file", EVIL),
        ("reassign", f"--{EVIL}"),
        ("lake", "describe", EVIL),
    ],
)
def test_hostile_arguments_do_not_reach_the_terminal(
    said: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    assert said(*arguments)


def test_log_formatter_cleans_hostile_text() -> None:
    record = logging.LogRecord("restow", logging.WARNING, "", 0, "client %s is odd", (EVIL,), None)
    assert CleanFormatter().format(record) == f"client {clean(EVIL)} is odd"


def test_clean_spells_out_unprintable_characters() -> None:
    assert clean("a\nb\x9b\u202e") == "a\\x0ab\\u009b\\u202e"
    assert clean_lines("a\nb\tc\x1b") == "a\nb\tc\\x1b"
    assert clean("Zürich, 東京") == "Zürich, 東京"


def test_reassign_cleans_text_that_it_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    assert reassign([f"--{EVIL}"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_console_cleans_all_text_printed_through_it(capsys: pytest.CaptureFixture[str]) -> None:
    """This covers views that forget to clean: plain text, styled text and live text."""
    page = console()
    page.print(EVIL)
    page.print(Text(EVIL, style="red"), style="bold")
    with Live(Group(Text(EVIL), EVIL), console=page, auto_refresh=False) as live:
        live.refresh()
    text = capsys.readouterr().out
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert "\\x1b[2J" in text
