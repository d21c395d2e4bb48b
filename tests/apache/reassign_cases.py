"""Calls of kafka-reassign-partitions, good and bad, for both tools.

A case is a few calls in a row, from the same start: `foo` at [a,b] and [b,c], `bar` at [c,a], and `big`,
which has enough data not to move under a small throttle, at [a,b].
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

START = {"foo": ((0, 1), (1, 2)), "bar": ((2, 0),), "big": ((0, 1),)}
NOBODY = 99
SLOW = "1000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`calls` are the arguments without the connection; a document stands for a file with it."""

    name: str
    calls: tuple[tuple[object, ...], ...]
    loose: bool = False
    """Whether the text of an error comes from a JSON parser, so that only its presence matters."""
    dirs: bool = False
    """Whether it needs brokers with two log dirs each."""


def arguments(call: tuple[object, ...], folder: Path) -> list[str]:
    """Return the arguments of a call, with its documents in files."""
    given = []
    for number, word in enumerate(call):
        if isinstance(word, str):
            given.append(word)
        else:
            path = folder / f"given-{number}.json"
            path.write_text(word.decode() if isinstance(word, bytes) else json.dumps(word))
            given.append(str(path))
    return given


def moves(*parts: tuple[object, ...], **more: object) -> dict[str, object]:
    keys = ("topic", "partition", "replicas", "log_dirs")
    return {"version": 1, "partitions": [dict(zip(keys, part, strict=False)) for part in parts], **more}


def topics(*names: str, **more: object) -> dict[str, object]:
    return {"version": 1, "topics": [{"topic": name} for name in names], **more}


def cases(ids: tuple[int, int, int], dirs: dict[int, tuple[str, str]] | None = None) -> list[Case]:
    """Return all cases for brokers of these ids, with their log dirs if they have two."""
    a, b, c = ids
    return [
        *_refused(a, b, c),
        *_generated(a, b, c),
        *_moved(a, b, c),
        *(_between_dirs(a, b, c, dirs) if dirs else []),
    ]


def _file(action: str, document: object, *more: str) -> tuple[object, ...]:
    return (f"--{action}", "--reassignment-json-file", document, *more)


def _refused(a: int, b: int, c: int) -> list[Case]:
    fine = moves(("foo", 0, [b, c]))
    flags: dict[str, tuple[object, ...]] = {
        "no action": (),
        "two actions": ("--list", "--verify"),
        "generate without files": ("--generate",),
        "execute without a file": ("--execute",),
        "unknown flag": ("--execute", "--bogus"),
        "a ZooKeeper besides": ("--list", "--zookeeper", "127.0.0.1:1"),
        "throttle with list": ("--list", "--throttle", "5"),
        "additional with verify": _file("verify", fine, "--additional"),
        "no such file": ("--verify", "--reassignment-json-file", "/nowhere/at/all"),
        "a throttle that is no number": _file("execute", fine, "--throttle", "fast"),
        "a flag twice": _file("execute", fine, "--timeout", "1", "--timeout", "2"),
    }
    files: dict[str, Any] = {
        "no partitions": moves(),
        "no list of partitions": {"version": 1},
        "a partition twice": moves(("foo", 0, [a, b]), ("foo", 0, [b, c])),
        "a broker twice": moves(("foo", 0, [a, a])),
        "no replicas": moves(("foo", 0, [])),
        "a broker that is not there": moves(("foo", 0, [a, NOBODY])),
        "a partition that is not there": moves(("foo", 7, [a, b])),
        "a topic that is not there": moves(("nope", 0, [a, b])),
        "version 2": moves(("foo", 0, [b, c]), version=2),
        "too few directories": moves(("foo", 0, [a, b], ["any"])),
        "no replicas field": moves(("foo", 0)),
    }
    odd: dict[str, Any] = {
        "not JSON": b"{nope",
        "an empty file": b"",
        "a list": [],
        "replicas in quotes": moves(("foo", 0, [str(a)])),
        "a version in quotes": moves(("foo", 0, [b, c]), version="1"),
    }
    return [
        *(Case(name=name, calls=(call,)) for name, call in flags.items()),
        *(Case(name=name, calls=(_file("execute", document),)) for name, document in files.items()),
        *(Case(name=name, calls=(_file("execute", document),), loose=True) for name, document in odd.items()),
        Case(name="verify what is not there", calls=(_file("verify", moves(("foo", 7, [a, b]))),)),
        Case(name="cancel what is not moving", calls=(_file("cancel", fine),)),
        Case(name="verify nothing", calls=(_file("verify", moves()),)),
    ]


def _generated(a: int, b: int, c: int) -> list[Case]:
    def call(document: object, brokers: str, *more: str) -> tuple[tuple[object, ...]]:
        return (("--generate", "--topics-to-move-json-file", document, "--broker-list", brokers, *more),)

    both = f"{b},{c}"
    return [
        Case(name="generate", calls=call(topics("foo", "bar"), both)),
        Case(name="generate without racks", calls=call(topics("foo"), both, "--disable-rack-aware")),
        Case(name="generate nothing", calls=call(topics(), both)),
        Case(name="generate for too few brokers", calls=call(topics("foo"), str(b))),
        Case(name="generate for a broker that is not there", calls=call(topics("foo"), f"{b},{NOBODY}")),
        Case(name="generate for a broker twice", calls=call(topics("foo"), f"{b},{b}")),
        Case(name="generate for words", calls=call(topics("foo"), "one,two")),
        Case(name="generate for a topic twice", calls=call(topics("foo", "foo"), both)),
        Case(name="generate for no topic", calls=call(topics("nope"), both)),
        Case(name="generate from version 2", calls=call(topics("foo", version=2), both)),
        Case(name="generate from a broken file", calls=call(b"[1", both), loose=True),
    ]


def _moved(a: int, b: int, c: int) -> list[Case]:
    two = moves(("foo", 1, [c, a]), ("foo", 0, [c, b]), ("bar", 0, [c, a, b]))
    slow = moves(("big", 0, [a, c]))
    wide = moves(("big", 0, [a, b, c]))
    other = moves(("foo", 0, [a, c]))
    more = ("--additional", "--throttle", SLOW)
    return [
        Case(name="move", calls=(_file("execute", two),)),
        Case(
            name="another order", calls=(_file("execute", moves(("foo", 0, [b, a])), "--throttle", "5000"),)
        ),
        Case(name="as it is", calls=(_file("execute", moves(("foo", 0, [a, b]), version=1)),)),
        Case(name="move, throttled", calls=(_file("execute", two, "--throttle", "10000000"),)),
        Case(
            name="a file without a version",
            calls=(_file("execute", {"partitions": [{"topic": "foo", "partition": 0, "replicas": [c, b]}]}),),
        ),
        Case(
            name="a throttle below zero is none",
            calls=(_file("execute", other, "--throttle", "-5"),),
        ),
        Case(
            name="while another runs",
            calls=(_file("execute", slow, "--throttle", SLOW), _file("execute", other), ("--list",)),
        ),
        Case(
            name="in addition to another",
            calls=(
                _file("execute", slow, "--throttle", SLOW),
                _file("execute", moves(("big", 0, [a, c]), ("foo", 0, [a, c])), *more),
                _file("verify", slow),
            ),
        ),
        Case(
            name="cancel",
            calls=(
                _file("execute", slow, "--throttle", SLOW),
                ("--list",),
                _file("verify", slow),
                _file("cancel", slow),
                ("--list",),
            ),
        ),
        Case(
            name="cancel and keep the throttles",
            calls=(_file("execute", slow, "--throttle", SLOW), _file("cancel", slow, "--preserve-throttles")),
        ),
        Case(
            name="one that only adds",
            calls=(_file("execute", wide, "--throttle", SLOW), ("--list",)),
        ),
    ]


def _between_dirs(a: int, b: int, c: int, dirs: dict[int, tuple[str, str]]) -> list[Case]:
    here, there = (
        moves(("foo", 0, [a, b], [dirs[a][0], "any"])),
        moves(("foo", 0, [a, b], [dirs[a][1], "any"])),
    )
    new = moves(("foo", 0, [a, c], ["any", dirs[c][1]]))
    wrong = moves(("foo", 0, [a, b], ["/nowhere", "any"]))
    return [
        Case(name="into a directory", calls=(_file("execute", there),), dirs=True),
        Case(name="into the one it is in", calls=(_file("execute", here), _file("verify", here)), dirs=True),
        Case(name="verify one that does not move", calls=(_file("verify", there),), dirs=True),
        Case(
            name="with a throttle of its own",
            calls=(_file("execute", there, "--replica-alter-log-dirs-throttle", "700"),),
            dirs=True,
        ),
        Case(
            name="into a directory of a new replica",
            calls=(_file("execute", new, "--timeout", "120000"),),
            dirs=True,
        ),
        Case(name="into no directory", calls=(_file("execute", wrong, "--timeout", "300"),), dirs=True),
    ]
