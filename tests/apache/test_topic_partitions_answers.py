"""DescribeTopicPartitions at an Apache Kafka 4.3.1 and at an embedded cluster: the same pages."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.wire.messages import CreateTopicsRequest, DescribeTopicPartitionsRequest
from tests.apache.raw_client import RawClient
from tests.clients.embedded import embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.apache, pytest.mark.full]
TOPICS = {"a": 3, "b": 1, "c": 5}


def question(*names: str, most: int = 2000, at: tuple[str, int] | None = None) -> Any:
    kind = DescribeTopicPartitionsRequest
    return kind(
        topics=[kind.TopicRequest(name=each) for each in names],
        response_partition_limit=most,
        cursor=None if at is None else kind.Cursor(topic_name=at[0], partition_index=at[1]),
    )


QUESTIONS = {
    "all": question(),
    "some": question("b", "a", "b"),
    "unknown": question("b", "nowhere", "a/b", "0"),
    "a page": question(most=2),
    "whole topics": question(most=3),
    "no room": question(most=0),
    "negative room": question(most=-5),
    "from a cursor": question("a", "b", at=("a", 1)),
    "from a cursor of all": question(at=("a", 2)),
    "a page from a cursor": question(at=("a", 2), most=2),
    "behind the last partition": question(at=("a", 7)),
    "at an unknown topic": question(at=("aa", 0)),
    "cursor not asked for": question("a", at=("b", 0)),
    "negative cursor": question("a", at=("a", -1)),
}


def told(answer: Any) -> Any:
    cursor = answer.next_cursor
    return (
        [
            (
                each.name,
                each.error_code,
                each.is_internal,
                each.topic_id is not None,
                each.topic_authorized_operations,
                [
                    (
                        *(it.error_code, it.partition_index, it.leader_epoch, it.eligible_leader_replicas),
                        *(it.last_known_elr, it.offline_replicas, len(it.replica_nodes), len(it.isr_nodes)),
                        it.leader_id in it.isr_nodes,
                    )
                    for it in each.partitions
                ],
            )
            for each in answer.topics
        ],
        None if cursor is None else (cursor.topic_name, cursor.partition_index),
    )


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, RawClient]]:
    with ExitStack() as stack:
        with needs_kafka():
            theirs = stack.enter_context(apache_kafka(tmp_path_factory.mktemp("apache"), version=KAFKA_4))
        ours = stack.enter_context(embedded(1))
        found = [stack.enter_context(RawClient(each.bootstrap)) for each in (theirs, ours)]
        made = CreateTopicsRequest.CreatableTopic
        for client in found:
            topics = [
                made(name=name, num_partitions=count, replication_factor=1) for name, count in TOPICS.items()
            ]
            answer = client.ask(5, CreateTopicsRequest(topics=topics, timeout_ms=60_000))
            assert not any(each.error_code for each in answer.topics)
            wait_until(lambda it=client: len(it.ask(0, question()).topics) == len(TOPICS), "topics known")
        yield found[0], found[1]


@pytest.mark.parametrize("name", QUESTIONS)
def test_pages_equal_those_of_kafka(clients: tuple[RawClient, RawClient], name: str) -> None:
    theirs, ours = (each.ask(0, QUESTIONS[name]) for each in clients)
    assert told(ours) == told(theirs)
