"""Operators' requests to an embedded cluster, by two admin clients."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafka import KafkaProducer

from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.clients.test_embedded_basics import read_with_kafka_python

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3, racks=("a", "b", "c"), log_dirs=2) as running:
        yield running


@pytest.fixture
def admin(cluster: Running) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


@pytest.fixture
def topic(cluster: Running, admin: AdminClient) -> str:
    """Create a topic that all brokers know, so that any of them may be asked."""
    name = f"topic-{uuid4().hex}"
    admin.create_topics([NewTopic(name, 3, 3)])[name].result(WAIT_S)
    cluster.wait_until_known(name, 3)
    return name


def refusal(error: pytest.ExceptionInfo[KafkaException]) -> str:
    return str(error.value.args[0].name())


def test_cluster_describes_itself(cluster: Running, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(WAIT_S)
    assert sorted((node.id, node.rack) for node in described.nodes) == [(0, "a"), (1, "b"), (2, "c")]
    assert described.cluster_id == cluster.cluster.brokers[0].services.metadata.cluster_id
    assert described.controller.id in (0, 1, 2)


def test_topics_are_spread_and_get_more_partitions(cluster: Running, admin: AdminClient, topic: str) -> None:
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(WAIT_S)
    cluster.wait_until_known(topic, 6)
    partitions = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    assert sorted(partitions) == list(range(6))
    leaders = [each.leader for each in partitions.values()]
    assert {leaders.count(broker) for broker in range(3)} == {2}
    assert {len(set(each.replicas)) for each in partitions.values()} == {3}
    assert {len(each.isrs) for each in partitions.values()} == {3}
    with pytest.raises(KafkaException) as error:
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT_S)
    assert refusal(error) == "INVALID_PARTITIONS"


def test_name_of_a_deleted_topic_is_free_again(admin: AdminClient, topic: str) -> None:
    for _ in range(3):
        admin.delete_topics([topic])[topic].result(WAIT_S)
        wait_until(lambda: topic not in admin.list_topics(timeout=WAIT_S).topics, "the topic is gone")

        def created() -> bool:
            """Return whether the topic was created; its name stays taken until the old one is deleted."""
            refused = admin.create_topics([NewTopic(topic, 1, 2)])[topic].exception(WAIT_S)
            assert refused is None or refused.args[0].name() == "TOPIC_ALREADY_EXISTS"
            return refused is None

        wait_until(created, "the topic is made again")
    with pytest.raises(KafkaException) as error:
        admin.delete_topics(["no-such-topic"])["no-such-topic"].result(WAIT_S)
    assert refusal(error) == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("bad name", 1, 1), "TOPIC_EXCEPTION"),
        (NewTopic("x" * 250, 1, 1), "TOPIC_EXCEPTION"),
        (NewTopic("too-many-replicas", 1, 4), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("no-partitions", 0, 1), "INVALID_PARTITIONS"),
        (NewTopic("unknown-broker", 1, replica_assignment=[[7]]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("unknown-config", 1, 1, config={"no.such.config": "1"}), "INVALID_CONFIG"),
        (NewTopic("bad-config", 1, 1, config={"retention.ms": "soon"}), "INVALID_CONFIG"),
    ],
    ids=lambda it: it.topic[:20] if isinstance(it, NewTopic) else None,
)
def test_invalid_topics_are_refused(admin: AdminClient, new: NewTopic, code: str) -> None:
    with pytest.raises(KafkaException) as error:
        admin.create_topics([new])[new.topic].result(WAIT_S)
    assert refusal(error) == code
    assert new.topic not in admin.list_topics(timeout=WAIT_S).topics


def test_topic_is_created_with_replicas_by_hand_and_validated_only(
    cluster: Running, admin: AdminClient
) -> None:
    name = f"by-hand-{uuid4().hex}"
    wanted = [[2, 0], [1, 2], [0, 1]]
    new = NewTopic(name, 3, replica_assignment=wanted)
    admin.create_topics([new], validate_only=True)[name].result(WAIT_S)
    assert name not in admin.list_topics(timeout=WAIT_S).topics
    admin.create_topics([new])[name].result(WAIT_S)
    cluster.wait_until_known(name, 3)
    partitions = admin.list_topics(name, timeout=WAIT_S).topics[name].partitions
    assert [partitions[number].replicas for number in range(3)] == wanted
    assert [partitions[number].leader for number in range(3)] == [2, 1, 0]


def test_topic_configs_change_on_every_broker(cluster: Running, admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)

    def counts() -> bool:
        found = [broker.services.configs.log_config(topic) for broker in cluster.cluster.brokers.values()]
        return {(each.retention_ms, each.cleanup_compact, each.cleanup_delete) for each in found} == {
            (12345, True, True)
        }

    wait_until(counts, "all brokers use the new configs")
    described = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert (described["retention.ms"].value, described["retention.ms"].is_default) == ("12345", False)
    assert described["cleanup.policy"].value == "delete,compact"
    back = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
        ],
    )
    admin.incremental_alter_configs([back])[back].result(WAIT_S)
    wait_until(
        lambda: admin.describe_configs([back])[back].result(WAIT_S)["retention.ms"].value == "604800000",
        "the default counts again",
    )


def test_broker_configs_are_altered_by_the_broker_itself(cluster: Running, admin: AdminClient) -> None:
    rate = "leader.replication.throttled.rate"
    resource = ConfigResource(
        ConfigResource.Type.BROKER,
        "1",
        incremental_configs=[ConfigEntry(rate, "1000", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    brokers = cluster.cluster.brokers
    wait_until(lambda: brokers[1].services.configs.value(rate) == 1000, "broker 1 knows")
    assert brokers[0].services.configs.value(rate) == 2**63 - 1
    assert admin.describe_configs([resource])[resource].result(WAIT_S)[rate].value == "1000"
    fixed = ConfigResource(
        ConfigResource.Type.BROKER,
        "1",
        incremental_configs=[ConfigEntry("num.partitions", "3", incremental_operation=AlterConfigOpType.SET)],
    )
    with pytest.raises(KafkaException) as error:
        admin.incremental_alter_configs([fixed])[fixed].result(WAIT_S)
    assert refusal(error) in ("INVALID_CONFIG", "INVALID_REQUEST")


def test_broker_shows_the_configs_that_it_was_started_with(cluster: Running, admin: AdminClient) -> None:
    """Also those that are no configs where it is started. Clients find a broker's rack by it."""
    resource = ConfigResource(ConfigResource.Type.BROKER, "2")
    found = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert (found["broker.id"].value, found["broker.rack"].value) == ("2", "c")
    assert len(found["log.dirs"].value.split(",")) == 2
    assert found["broker.rack"].is_read_only


def test_records_are_deleted_from_the_start(cluster: Running, admin: AdminClient, topic: str) -> None:
    sent = [b"%d" % number for number in range(100)]
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")) as producer:
        for value in sent:
            producer.send(topic, value, partition=0)
        producer.flush()
    where = TopicPartition(topic, 0, 40)
    assert admin.delete_records([where])[where].result(WAIT_S).low_watermark == 40
    first = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})
    assert [future.result(WAIT_S).offset for future in first.values()] == [40]
    assert read_with_kafka_python(cluster.bootstrap, topic, count=60)[-60:] == sent[40:]
    beyond = TopicPartition(topic, 0, 101)
    with pytest.raises(KafkaException) as error:
        admin.delete_records([beyond])[beyond].result(WAIT_S)
    assert refusal(error) == "OFFSET_OUT_OF_RANGE"


def test_log_dirs_are_filled_evenly(cluster: Running) -> None:
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as Wanted

    name = f"spread-{uuid4().hex}"
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as other:
        other.create_topics([Wanted(name, num_partitions=10, replication_factor=3)])
        cluster.wait_until_known(name, 10)
        for broker in cluster.cluster.brokers.values():
            counts = [len(each.logs) for each in broker.services.logs.directories]
            assert max(counts) - min(counts) <= 1
            assert len(counts) == 2
        assert other.describe_log_dirs()


def test_preferred_leaders_are_elected_on_request(admin: AdminClient) -> None:
    from confluent_kafka import ElectionType

    name = f"elected-{uuid4().hex}"
    with embedded(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(name, 1, replica_assignment=[[1, 0, 2]])])[name].result(WAIT_S)
        running.wait_until_known(name)
        assert running.leader_of(name) == 1
        running.stop(1)
        wait_until(lambda: running.leader_of(name) in (0, 2), "another leader")
        running.start(1)
        wait_until(lambda: running.in_sync(name) == {0, 1, 2}, "all in sync")
        assert running.leader_of(name) != 1
        where = TopicPartition(name, 0)
        # An older client may ask the former controller, and does not retry.
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        elected = admin.elect_leaders(ElectionType.PREFERRED, [where]).result(WAIT_S)
        assert elected == {where: None}
        wait_until(lambda: running.leader_of(name) == 1, "the first replica leads")
