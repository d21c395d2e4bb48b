"""Partitions with data move on an embedded cluster, driven by a client and by Kafka's own tool."""

from __future__ import annotations

import json
import re
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import (
    InvalidReplicationAssignmentError,
    NoReassignmentInProgressError,
    ReassignmentInProgressError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)

from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.tools import Tools
from restow.cluster.controller import ControllerStep
from restow.model import TopicPartition as Partition
from tests.clients.consumers import LONG_POLL_MS
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.clients.test_embedded_basics import read_with_kafka_python
from tests.conftest import needs_kafka
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Iterator

REASSIGN = "kafka-reassign-partitions"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(5, racks=("a", "b", "c"), log_dirs=2) as running:
        yield running


@pytest.fixture
def admin(cluster: Running) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as found:
        yield found


def create(admin: KafkaAdminClient, *replicas: list[int]) -> str:
    """Create a topic with these replicas of its partitions."""
    name = f"moved-{uuid4().hex}"
    assignments = dict(enumerate(replicas))
    admin.create_topics([NewTopic(name, replica_assignments=assignments)])
    return name


def fill(cluster: Running, topic: str, count: int = 2000, partition: int = 0) -> list[bytes]:
    values = [b"%d " % number + b"x" * 200 for number in range(count)]
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)
        producer.flush(WAIT_S)
    return values


def move(admin: KafkaAdminClient, topic: str, replicas: list[int] | None, partition: int = 0) -> Any:
    """Submit a move; return the error, None if there is none."""
    key = TopicPartition(topic, partition)
    return admin.alter_partition_reassignments({key: replicas})[key]


def replicas_of(cluster: Running, topic: str, partition: int = 0) -> set[tuple[int, ...]]:
    """Return the replicas in each running broker's metadata."""
    found = set()
    for broker in cluster.cluster.brokers.values():
        if broker.is_running:
            known = broker.services.metadata.partition(Partition(topic, partition))
            found.add(() if known is None else known.replicas)
    return found


def holders_of(cluster: Running, topic: str, partition: int = 0) -> set[int]:
    """Return the brokers that have a log of the partition."""
    key = Partition(topic, partition)
    return {
        number
        for number, broker in cluster.cluster.brokers.items()
        if broker.is_running and broker.services.logs.get(key) is not None
    }


def wait_for_move(cluster: Running, admin: KafkaAdminClient, topic: str, target: tuple[int, ...]) -> None:
    wait_until(lambda: not admin.list_partition_reassignments(), "nothing moves")
    wait_until(lambda: replicas_of(cluster, topic) == {target}, "all brokers know the replicas")
    wait_until(lambda: cluster.in_sync(topic) == set(target), "all replicas are in sync")
    wait_until(lambda: holders_of(cluster, topic) == set(target), "only the replicas have a log")


@pytest.mark.parametrize(
    ("before", "after", "leaders"),
    [
        ([0, 1], [2, 3], {2, 3}),
        ([0, 1], [0, 1, 2], {0}),
        ([0, 1], [2, 0, 1], {0}),
        ([0, 1, 2], [0, 1], {0}),
        ([0, 1, 2], [2, 0], {0}),
        ([0, 1, 2], [1, 2], {1, 2}),
        ([0, 1, 2], [2, 1, 0], {0}),
        ([3], [4], {4}),
    ],
    ids=str,
)
def test_data_moves_with_the_replicas(
    cluster: Running, admin: KafkaAdminClient, before: list[int], after: list[int], leaders: set[int]
) -> None:
    topic = create(admin, before)
    sent = fill(cluster, topic)
    assert move(admin, topic, after) is None
    wait_for_move(cluster, admin, topic, tuple(after))
    assert cluster.leader_of(topic) in leaders
    assert read_with_kafka_python(cluster.bootstrap, topic, count=len(sent)) == sent
    (copy,) = {contents(cluster, number, topic) for number in after}
    assert sent[-1] in copy


def contents(cluster: Running, broker_id: int, topic: str) -> bytes:
    """Return the bytes of a broker's segments."""
    logs = cluster.cluster.brokers[broker_id].services.logs
    folder = Path(logs.directory_of(Partition(topic, 0)).path) / f"{topic}-0"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_clients_write_and_read_while_the_leader_moves(cluster: Running, admin: KafkaAdminClient) -> None:
    topic = create(admin, [0, 1])
    stop = threading.Event()
    sent: list[bytes] = []
    failures: list[Exception] = []

    def write() -> None:
        with closing(
            KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=True)
        ) as producer:
            number = 0
            while not stop.is_set():
                value = b"%d" % number
                try:
                    producer.send(topic, value, partition=0).get(WAIT_S)
                except Exception as error:  # noqa: BLE001  the test shows it
                    failures.append(error)
                    return
                sent.append(value)
                number += 1

    def more() -> None:
        before = len(sent)
        wait_until(lambda: bool(failures) or len(sent) > before + 20, "more is written")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for target in ([2, 3], [3, 4], [1, 0]):
            more()
            assert move(admin, topic, target) is None
            wait_for_move(cluster, admin, topic, tuple(target))
        more()
    finally:
        stop.set()
        writer.join(WAIT_S)
    assert not failures
    assert read_with_kafka_python(cluster.bootstrap, topic, count=len(sent)) == sent


def test_kafka_13198_and_9235_groups_continue_when_their_coordinator_moves(
    cluster: Running, admin: KafkaAdminClient
) -> None:
    topic = create(admin, [0, 1])
    sent = fill(cluster, topic, 300)
    group = f"group-{uuid4().hex}"
    with closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=50,
        )
    ) as consumer:
        read = []
        rounds = 0
        while len(read) < len(sent):
            records = next_records(consumer)
            read += [record.value for record in records]
            if records:
                consumer.commit()
                rounds += 1
                if rounds in (2, 4):
                    move_coordinators(cluster, admin, rounds)
        assert read == sent
        assert consumer.committed(TopicPartition(topic, 0)) == len(sent)


def next_records(consumer: KafkaConsumer) -> list[Any]:
    polled = consumer.poll(timeout_ms=LONG_POLL_MS)
    return [record for records in polled.values() for record in records]


def move_coordinators(cluster: Running, admin: KafkaAdminClient, turn: int) -> None:
    """Assign other replicas to every partition of the offsets topic."""
    topic = "__consumer_offsets"
    count = cluster.cluster.brokers[0].services.metadata.partition_count(topic)
    target = [[3, 4], [0, 1]][turn % 4 // 2]
    outcome = admin.alter_partition_reassignments(
        {TopicPartition(topic, number): target for number in range(count)}
    )
    assert set(outcome.values()) == {None}
    wait_until(lambda: not admin.list_partition_reassignments(), "nothing moves")


# Moves that are held up, so that there is time to inspect them


@pytest.fixture
def stalled(cluster: Running, admin: KafkaAdminClient) -> Iterator[str]:
    """Move a topic from [0, 1] to [4, 1]; broker 4 dies as the move begins, and comes back."""
    topic = create(admin, [0, 1])
    fill(cluster, topic, 100)
    target = 4
    if cluster.cluster.brokers[target].services.controller.is_active:
        cluster.stop(target)
        cluster.start(target)
    dead = threading.Event()
    controllers = [broker.services.controller for broker in cluster.cluster.brokers.values()]

    async def kill(step: ControllerStep) -> None:
        if step is ControllerStep.U2 and not dead.is_set():
            await cluster.cluster.kill_broker(target)
            dead.set()

    for controller in controllers:
        controller.at = kill
    try:
        assert move(admin, topic, [4, 1]) is None
        assert dead.is_set()
        yield topic
    finally:
        if not cluster.cluster.brokers[target].is_running:
            cluster.start(target)
        wait_until(lambda: not admin.list_partition_reassignments(), "nothing moves")


def test_move_is_listed_while_it_runs(cluster: Running, admin: KafkaAdminClient, stalled: str) -> None:
    key = TopicPartition(stalled, 0)
    (found,) = admin.list_partition_reassignments().values()
    assert found == admin.list_partition_reassignments([key])[key]
    assert found == {"replicas": [4, 1, 0], "adding_replicas": [4], "removing_replicas": [0]}
    assert admin.list_partition_reassignments([TopicPartition("other", 0)]) == {}
    wait_until(lambda: replicas_of(cluster, stalled) == {(4, 1, 0)}, "metadata shows added replicas")
    with pytest.raises(ReassignmentInProgressError):
        admin.create_partitions({stalled: NewPartitions(3)})


def test_move_is_cancelled(cluster: Running, admin: KafkaAdminClient, stalled: str) -> None:
    assert move(admin, stalled, None) is None
    assert admin.list_partition_reassignments() == {}
    assert move(admin, stalled, None) is NoReassignmentInProgressError
    cluster.start(4)
    wait_for_move(cluster, admin, stalled, (1, 0))


def test_move_continues_when_the_broker_comes_back(
    cluster: Running, admin: KafkaAdminClient, stalled: str
) -> None:
    cluster.start(4)
    wait_for_move(cluster, admin, stalled, (4, 1))
    assert len(read_with_kafka_python(cluster.bootstrap, stalled, count=100)) == 100


def test_another_target_replaces_a_move(cluster: Running, admin: KafkaAdminClient, stalled: str) -> None:
    assert move(admin, stalled, [3, 2]) is None
    wait_for_move(cluster, admin, stalled, (3, 2))
    cluster.start(4)
    wait_until(lambda: holders_of(cluster, stalled) == {2, 3}, "nothing is left of the first move")


def test_topic_deleted_during_a_move_is_deleted_afterwards(
    cluster: Running, admin: KafkaAdminClient, stalled: str
) -> None:
    with pytest.raises(RequestTimedOutError):
        admin.delete_topics([stalled], timeout_ms=500)
    assert admin.list_partition_reassignments()
    cluster.start(4)
    wait_until(lambda: not holders_of(cluster, stalled), "nothing is left of the topic")


def test_invalid_moves_are_refused(cluster: Running, admin: KafkaAdminClient) -> None:
    topic = create(admin, [0, 1])
    cluster.wait_until_known(topic)
    for target in ([1, 1], [-1], [0, 99]):
        assert move(admin, topic, target) is InvalidReplicationAssignmentError
    assert move(admin, topic, [0], partition=7) is UnknownTopicOrPartitionError
    assert move(admin, "no-such-topic", [0]) is UnknownTopicOrPartitionError
    assert replicas_of(cluster, topic) == {(0, 1)}


def test_request_written_into_the_store_is_carried_out(cluster: Running, admin: KafkaAdminClient) -> None:
    topic = create(admin, [0, 1], [1, 2])
    fill(cluster, topic)
    entries = [
        {"topic": topic, "partition": 0, "replicas": [2, 3]},
        {"topic": "no-such-topic", "partition": 0, "replicas": [2, 3]},
    ]
    request = json.dumps({"version": 1, "partitions": entries}).encode()
    store = cluster.cluster.brokers[0].services.store
    cluster.do(store.create("/admin/reassign_partitions", request))
    wait_for_move(cluster, admin, topic, (2, 3))
    wait_until(lambda: cluster.do(store.exists("/admin/reassign_partitions")) is None, "it is removed")


# Kafka's own tool


@pytest.fixture(scope="module", params=often([KAFKA_VERSION, KAFKA_4], KAFKA_4))
def tools(request: pytest.FixtureRequest) -> Tools:
    tools = Tools(request.param)
    with needs_kafka():
        tools.command(REASSIGN)
    return tools


@pytest.mark.apache
def test_tool_generates_executes_and_verifies(
    cluster: Running, admin: KafkaAdminClient, tools: Tools, tmp_path: Path
) -> None:
    topic = create(admin, [0, 1], [1, 0], [0, 1])
    sent = fill(cluster, topic)
    where = ("--bootstrap-server", cluster.bootstrap)
    to_move = tmp_path / "topics.json"
    to_move.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generated = tools.run(
        REASSIGN, *where, "--generate", "--topics-to-move-json-file", str(to_move), "--broker-list", "2,3,4"
    )
    proposal = generated.splitlines()[-1]
    plan = tmp_path / "plan.json"
    plan.write_text(proposal)
    wanted = {each["partition"]: each["replicas"] for each in json.loads(proposal)["partitions"]}
    file = ("--reassignment-json-file", str(plan))
    executed = tools.run(REASSIGN, *where, "--execute", "--throttle", "100000000", *file)
    assert "The inter-broker throttle limit was set to 100000000 B/s" in executed
    assert "Successfully started partition reassignments for" in executed

    wait_until(lambda: not admin.list_partition_reassignments(), "nothing moves")
    shown = tools.run(REASSIGN, *where, "--verify", *file)
    assert "Clearing broker-level throttles on brokers 0,1,2,3,4" in shown
    assert f"Clearing topic-level throttles on topic {topic}" in shown
    assert len(re.findall(rf"Reassignment of partition {topic}-\d is completed", shown)) == 3
    for number, replicas in wanted.items():
        wait_until(lambda n=number, r=tuple(replicas): replicas_of(cluster, topic, n) == {r}, "as planned")
    assert read_with_kafka_python(cluster.bootstrap, topic, count=len(sent)) == sent
    assert "No partition reassignments found." in tools.run(REASSIGN, *where, "--list")


@pytest.mark.apache
def test_tool_lists_and_cancels(
    cluster: Running, admin: KafkaAdminClient, tools: Tools, tmp_path: Path, stalled: str
) -> None:
    where = ("--bootstrap-server", cluster.bootstrap)
    listed = tools.run(REASSIGN, *where, "--list")
    assert f"{stalled}-0: replicas: 4,1,0. adding: 4. removing: 0." in listed
    plan = tmp_path / "plan.json"
    entry = {"topic": stalled, "partition": 0, "replicas": [4, 1], "log_dirs": ["any", "any"]}
    plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    file = ("--reassignment-json-file", str(plan))
    progress = tools.run(REASSIGN, *where, "--verify", "--preserve-throttles", *file)
    assert f"Reassignment of partition {stalled}-0 is still in progress" in progress
    cancelled = tools.run(REASSIGN, *where, "--cancel", "--preserve-throttles", *file)
    assert f"Successfully cancelled partition reassignment for: {stalled}-0" in cancelled
    assert admin.list_partition_reassignments() == {}
    cluster.start(4)
    wait_for_move(cluster, admin, stalled, (1, 0))
