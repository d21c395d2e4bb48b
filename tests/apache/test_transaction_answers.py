"""Transactions: the same requests get the same answers from the embedded cluster and Apache Kafka 3.9.1."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from tests.apache.raw_client import RawClient
from tests.apache.transaction_talk import OTHER, TOPIC, Talk
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.apache, pytest.mark.full]


def refusals(talk: Talk) -> None:
    talk.init("", 60_000)
    talk.init("a", 0)
    talk.init("a", 900_001)
    talk.init("a", 60_000, (5, -1))
    talk.init("a", 60_000, (-1, 5))
    talk.add("never", (1, 0))
    talk.end("never", (1, 0), True)
    talk.describe("never")
    a = talk.init("a")
    talk.describe("a")
    for version in (0, 3):
        talk.end("a", a, True, version)
        talk.end("a", (a[0], a[1] + 1), True, version)
        talk.end("a", (a[0] + 100, a[1]), True, version)
        talk.add("a", (a[0], a[1] + 1), version=version)
        talk.add("a", (a[0] + 100, a[1]), version=version)
    talk.add("a", a, (TOPIC, 0), ("nowhere", 0))
    talk.add("a", a, (TOPIC, 0), (TOPIC, 9))
    talk.add("a", a, ("__consumer_offsets", 0))
    talk.verify("a", a)
    talk.list()


def commit_and_abort(talk: Talk) -> None:
    a = talk.init("a")
    talk.add("a", a)
    talk.describe("a")
    talk.verify("a", a)
    talk.verify("a", a, OTHER)
    talk.produce("a", a, 0, b"one")
    talk.produce("a", a, 1, b"two")
    talk.produce("a", a, 1, b"two")
    talk.produce("a", a, 5, b"gap")
    talk.producers()
    talk.fetch(0)
    talk.fetch(1)
    talk.latest(0)
    talk.latest(1)
    talk.latest(1, 1)
    talk.end("a", a, True)
    talk.settled("a")
    talk.describe("a")
    talk.end("a", a, True)
    talk.end("a", a, False)
    talk.fetch(0)
    talk.fetch(1)
    talk.add("a", a)
    talk.produce("a", a, 2, b"three")
    talk.end("a", a, False)
    talk.settled("a")
    talk.end("a", a, False)
    talk.end("a", a, True)
    talk.describe("a")
    talk.fetch(0)
    talk.fetch(1)
    talk.fetch(1, offset=2)
    talk.fetch(1, offset=4)
    talk.latest(1)
    talk.producers()


def not_begun(talk: Talk) -> None:
    a = talk.init("a")
    for version in (9, 11):
        talk.produce("a", a, 0, version=version)
        talk.produce(None, a, 0, version=version)
    talk.add("a", a)
    talk.produce("a", (a[0], a[1] + 1), 0)
    talk.produce("a", a, 0)
    talk.produce("a", a, 1, transactional=False)
    talk.produce(None, a, 1, transactional=False)
    talk.produce("a", a, 0, topic=OTHER)
    talk.end("a", a, True)
    talk.settled("a")
    talk.produce("a", a, 1)
    talk.fetch(1)


def fencing(talk: Talk) -> None:
    old = talk.init("a")
    talk.add("a", old)
    talk.produce("a", old, 0, b"old")
    new = talk.init_until_done("a")
    talk.describe("a")
    talk.fetch(0)
    talk.fetch(1)
    for version in (9, 11):
        talk.produce("a", old, 1, version=version)
    talk.add("a", old)
    talk.add_offsets("a", old)
    talk.end("a", old, True)
    talk.end("a", old, True, 1)
    talk.init("a", 60_000, old)
    talk.init("a", 60_000, old, 3)
    talk.add("a", new)
    talk.produce("a", new, 1, b"wrong")
    talk.produce("a", new, 0, b"new")
    talk.end("a", new, True)
    talk.settled("a")
    talk.fetch(1)
    talk.producers()


def begun_anew_by_name(talk: Talk) -> None:
    first = talk.init("a")
    second = talk.init("a", 60_000, first)
    talk.init("a", 60_000, first)
    third = talk.init("a", 60_000, second)
    talk.init("a", 60_000, first)
    talk.init("a", 60_000, (first[0] + 100, 0))
    talk.init("a", 70_000)
    talk.init("a", 60_000, third)
    talk.init(None, 60_000)
    talk.init("b", 60_000, (first[0], 3))
    talk.describe("a")
    talk.list(("Empty",))
    talk.list(("Ongoing",))
    talk.list(("Ongoing", "Nonsense"))
    talk.list(("Nonsense",))
    talk.list(duration=1_000_000)
    talk.list(version=0)


def offsets_in_transactions(talk: Talk) -> None:
    a = talk.init("a")
    for version in (3, 4):
        talk.commit_offsets("a", a, 1, version=version)
    talk.add_offsets("a", a)
    talk.commit_offsets("a", a, 5)
    talk.commit_offsets("a", a, 5, topic="nowhere")
    talk.commit_offsets("a", a, 5, member="m", generation=3)
    talk.commit_offsets("a", a, 5, generation=3)
    talk.offset(stable=False)
    talk.offset(stable=True)
    talk.end("a", a, True)
    talk.settled("a")
    talk.offset(stable=True)
    talk.add_offsets("a", a)
    talk.commit_offsets("a", a, 9, version=0)
    talk.end("a", a, False)
    talk.settled("a")
    talk.offset(stable=True)
    talk.add_offsets("a", a, "")
    talk.describe("a")


def two_at_once(talk: Talk) -> None:
    a, b = talk.init("a"), talk.init("b")
    talk.add("a", a)
    talk.add("b", b)
    talk.produce("a", a, 0, b"a0")
    talk.produce("b", b, 0, b"b0")
    talk.produce("a", a, 1, b"a1")
    talk.end("b", b, False)
    talk.settled("b")
    talk.fetch(1)
    talk.add("b", b)
    talk.produce("b", b, 1, b"b1")
    talk.end("a", a, True)
    talk.settled("a")
    talk.fetch(1)
    talk.end("b", b, False)
    talk.settled("b")
    talk.fetch(1)
    talk.fetch(1, offset=3)
    talk.producers()
    talk.list()


SCENES = [
    refusals,
    commit_and_abort,
    not_begun,
    fencing,
    begun_anew_by_name,
    offsets_in_transactions,
    two_at_once,
]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(apache_kafka(tmp_path_factory.mktemp("kafka")))
        yield cluster.bootstrap


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with embedded(1) as running:
        yield running.bootstrap


def answers_of(bootstrap: str, scene: Callable[[Talk], None]) -> list[Any]:
    with RawClient(bootstrap) as client:
        talk = Talk(client, scene.__name__)
        scene(talk)
        return talk.answers


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_answers_equal_those_of_apache(apache: str, ours: str, scene: Callable[[Talk], None]) -> None:
    assert answers_of(ours, scene) == answers_of(apache, scene)
