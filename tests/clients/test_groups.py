"""Real consumers with our drop-ins in groups on a real Apache Kafka."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.oracle import ASSIGNORS
from restow.assignors.adapters import aiokafka, kafka_python
from tests.clients.consumers import Aiokafka, Java, KafkaPython, Watched, wait_until_shared_evenly
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import JavaGateway

    from tests.clients.topics import Topics

pytestmark = pytest.mark.apache

STICKY = {"sticky", "cooperative-sticky"}
KAFKA_PYTHON = {
    each.name: each
    for each in (
        kafka_python.Range,
        kafka_python.RoundRobin,
        kafka_python.Sticky,
        kafka_python.CooperativeSticky,
    )
}
AIOKAFKA = {each.name: each for each in (aiokafka.Range, aiokafka.RoundRobin, aiokafka.Sticky)}


def of_kafka_python(topics: Topics, name: str) -> Watched:
    return KafkaPython(topics, KAFKA_PYTHON[name])


def of_aiokafka(topics: Topics, name: str) -> Watched:
    return Aiokafka(topics, AIOKAFKA[name])


@pytest.mark.parametrize("name", often(KAFKA_PYTHON, "range", "cooperative-sticky"))
def test_three_kafka_python_consumers_share_a_group(topics: Topics, name: str) -> None:
    live_together(topics, name, [of_kafka_python] * 3)


@pytest.mark.parametrize("name", often(AIOKAFKA, "sticky"))
def test_three_aiokafka_consumers_share_a_group(topics: Topics, name: str) -> None:
    live_together(topics, name, [of_aiokafka] * 3)


@pytest.mark.parametrize("name", often(AIOKAFKA, "roundrobin", "sticky"))
@pytest.mark.parametrize(
    "makers",
    [[of_kafka_python, of_aiokafka, of_kafka_python], [of_aiokafka, of_kafka_python, of_aiokafka]],
    ids=["kafka-python leads", "aiokafka leads"],
)
def test_both_clients_share_one_group(
    topics: Topics, name: str, makers: list[Callable[[Topics, str], Watched]]
) -> None:
    live_together(topics, name, makers)


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("name", "java_leads"),
    often(
        [(name, java_leads) for name in KAFKA_PYTHON for java_leads in (True, False)],
        ("range", True),
        ("roundrobin", False),
        ("sticky", True),
        ("sticky", False),
        ("cooperative-sticky", True),
        ("cooperative-sticky", False),
    ),
)
def test_java_and_our_assignors_share_one_group(
    topics: Topics, gateway: JavaGateway, name: str, java_leads: bool
) -> None:
    def of_java(topics: Topics, name: str) -> Watched:
        return Java(topics, ASSIGNORS[name], gateway)

    other = of_aiokafka if name in AIOKAFKA else of_kafka_python
    makers = [of_java, of_kafka_python, other] if java_leads else [of_kafka_python, of_java, other]
    live_together(topics, name, makers)


def live_together(topics: Topics, name: str, makers: list[Callable[[Topics, str], Watched]]) -> None:
    """Join one by one, leave from the first on; all partitions are always shared evenly.

    With a sticky assignor no member gives away more than the new one needs, or loses anything to one that
    leaves.
    """
    members: list[Watched] = []
    before: list[Any] = []
    with ExitStack() as stack:
        for make in makers:
            members.append(stack.enter_context(make(topics, name)))
            now = wait_until_shared_evenly(topics, members)
            if name in STICKY:
                assert all(new <= old for new, old in zip(now[:-1], before, strict=True))
            before = now
        while len(members) > 1:
            members.pop(0).leave()
            now = wait_until_shared_evenly(topics, members)
            if name in STICKY:
                assert all(old <= new for new, old in zip(now, before[1:], strict=True))
            before = now
