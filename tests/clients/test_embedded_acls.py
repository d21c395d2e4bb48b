"""ACLs on an embedded cluster: clients may do what they are allowed to, and nothing else."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import TopicAuthorizationFailedError

from tests.clients.embedded import WAIT_S, Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USERS = {"root": "r", "alice": "a"}
ALICE = "User:alice"
OPTIONS: dict[str, Any] = {"listeners": ("SASL_PLAINTEXT",), "users": USERS, "super_users": ("root",)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3, **OPTIONS) as running:
        yield running


def of_confluent(running: Running, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": running.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user],
    }


def of_kafka_python(running: Running, user: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": running.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": USERS[user],
    }


def acl(resource: Any, name: str, operation: Any, **more: Any) -> AclBinding:
    pattern = more.get("pattern", ResourcePatternType.LITERAL)
    permission = more.get("permission", AclPermissionType.ALLOW)
    return AclBinding(resource, name, pattern, more.get("principal", ALICE), "*", operation, permission)


def done(futures: Any) -> list[Any]:
    return [future.result(WAIT_S) for future in futures.values()]


@contextmanager
def granted(running: Running, *acls: AclBinding) -> Iterator[None]:
    """Create ACLs and wait until all brokers know them; delete them afterwards."""
    root = AdminClient(of_confluent(running, "root"))
    done(root.create_acls(list(acls)))
    wait_until(lambda: all(len(known(running, number)) >= len(acls) for number in range(3)), "all know")
    try:
        yield
    finally:
        every = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        assert {str(each) for each in done(root.delete_acls([every]))[0]} == {str(each) for each in acls}
        wait_until(lambda: not any(known(running, number) for number in range(3)), "all forget")


def known(running: Running, number: int) -> list[Any]:
    acls = running.cluster.brokers[number].services.acls
    assert acls is not None
    return [each for entries in acls.rules.acls.values() for each in entries]


def create(running: Running, topic: str) -> None:
    root = AdminClient(of_confluent(running, "root"))
    done(root.create_topics([NewTopic(topic, 1, 3)]))
    running.wait_until_known(topic)


def code_of(error: BaseException) -> int:
    assert isinstance(error, KafkaException)
    return int(error.args[0].code())


def test_user_without_acls_may_do_nothing(cluster: Running) -> None:
    create(cluster, "closed")
    with (
        closing(KafkaProducer(**of_kafka_python(cluster, "alice"))) as producer,
        pytest.raises(TopicAuthorizationFailedError),
    ):
        producer.send("closed", b"x").get(timeout=WAIT_S)
    admin = AdminClient(of_confluent(cluster, "alice"))
    assert "closed" not in admin.list_topics(timeout=WAIT_S).topics
    for attempt in (
        admin.create_topics([NewTopic("another", 1, 1)]),
        admin.delete_topics(["closed"]),
        admin.create_acls([acl(ResourceType.TOPIC, "closed", AclOperation.ALL)]),
    ):
        for future in attempt.values():
            with pytest.raises(KafkaException) as refused:
                future.result(WAIT_S)
            assert code_of(refused.value) in (
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            )
    assert "closed" in AdminClient(of_confluent(cluster, "root")).list_topics(timeout=WAIT_S).topics


def test_brokers_replicate_without_acls(cluster: Running) -> None:
    create(cluster, "replicated")
    with closing(KafkaProducer(**of_kafka_python(cluster, "root"), acks="all")) as producer:
        producer.send("replicated", b"x").get(timeout=WAIT_S)
    wait_until(lambda: cluster.in_sync("replicated") == {0, 1, 2}, "all replicas are in sync")


def test_user_writes_and_reads_what_acls_allow(cluster: Running) -> None:
    create(cluster, "app-orders")
    create(cluster, "other")
    prefixed = ResourcePatternType.PREFIXED
    with granted(
        cluster,
        acl(ResourceType.TOPIC, "app-", AclOperation.WRITE, pattern=prefixed),
        acl(ResourceType.TOPIC, "app-", AclOperation.READ, pattern=prefixed),
        acl(ResourceType.GROUP, "*", AclOperation.READ),
    ):
        client = Producer({**of_confluent(cluster, "alice"), "enable.idempotence": True})
        failed: list[Any] = []
        for topic in ("app-orders", "other"):
            client.produce(topic, topic.encode(), on_delivery=lambda error, _: failed.append(error))
        assert client.flush(WAIT_S) == 0
        codes = [None if each is None else each.code() for each in failed]
        assert sorted(codes, key=str) == [KafkaError.TOPIC_AUTHORIZATION_FAILED, None]
        consumer = KafkaConsumer(
            "app-orders", group_id="g", auto_offset_reset="earliest", **of_kafka_python(cluster, "alice")
        )
        found: list[bytes] = []
        with closing(consumer):

            def read() -> bool:
                for records in consumer.poll(timeout_ms=500).values():
                    found.extend(record.value for record in records)
                return bool(found)

            wait_until(read, "a record")
            consumer.commit()
        assert found == [b"app-orders"]


def test_denial_counts_more_than_a_permission(cluster: Running) -> None:
    create(cluster, "secret")
    with granted(
        cluster,
        acl(ResourceType.TOPIC, "*", AclOperation.ALL, principal="User:*"),
        acl(ResourceType.TOPIC, "secret", AclOperation.READ, permission=AclPermissionType.DENY),
    ):
        consumer = KafkaConsumer(**of_kafka_python(cluster, "alice"), auto_offset_reset="earliest")
        from kafka import TopicPartition as Partition

        with closing(consumer):
            consumer.assign([Partition("secret", 0)])

            def refused() -> bool:
                try:
                    consumer.poll(timeout_ms=500)
                except KafkaPythonError as error:
                    return isinstance(error, TopicAuthorizationFailedError)
                return False

            wait_until(refused, "the read is refused")
        with closing(KafkaProducer(**of_kafka_python(cluster, "alice"))) as producer:
            assert producer.send("secret", b"x").get(timeout=WAIT_S).topic == "secret"


def of_id(operation: Any, **more: Any) -> AclBinding:
    return acl(ResourceType.TRANSACTIONAL_ID, "payments", operation, **more)


REFUSED: dict[str, tuple[list[AclBinding], dict[str, Any], int]] = {
    "no ACL": (
        [acl(ResourceType.TOPIC, "ledger", AclOperation.WRITE)],
        {},
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "may describe it only": (
        [of_id(AclOperation.DESCRIBE)],
        {},
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "denied": (
        [of_id(AclOperation.WRITE), of_id(AclOperation.WRITE, permission=AclPermissionType.DENY)],
        {},
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "timeout too long": (
        [of_id(AclOperation.WRITE)],
        {"transaction.timeout.ms": 2_000_000},
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused_transactional_producer_is_told_at_once(cluster: Running, why: str) -> None:
    """It would get _TIMED_OUT if it had to try until its time is up."""
    acls, settings, code = REFUSED[why]
    options = {**of_confluent(cluster, "alice"), "transactional.id": "payments", "log_level": 0, **settings}
    with granted(cluster, *acls), pytest.raises(KafkaException) as refused:
        Producer(options).init_transactions(WAIT_S)
    assert code_of(refused.value) == code


def test_transactional_producer_needs_its_id(cluster: Running) -> None:
    create(cluster, "ledger")
    options = {**of_confluent(cluster, "alice"), "transactional.id": "payments"}
    write = acl(ResourceType.TOPIC, "ledger", AclOperation.WRITE)
    with granted(cluster, write, of_id(AclOperation.WRITE)):
        producer = Producer(options)
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce("ledger", b"1")
        producer.commit_transaction(WAIT_S)


def test_groups_are_seen_by_those_who_may(cluster: Running) -> None:
    create(cluster, "grouped")
    root = KafkaConsumer("grouped", group_id="seen", **of_kafka_python(cluster, "root"))
    with closing(root):
        wait_until(lambda: bool(root.poll(timeout_ms=200)) or bool(root.assignment()), "a member")
        alice = AdminClient(of_confluent(cluster, "alice"))
        assert not alice.list_consumer_groups(request_timeout=WAIT_S).result().valid
        with granted(cluster, acl(ResourceType.GROUP, "seen", AclOperation.DESCRIBE)):
            listed = alice.list_consumer_groups(request_timeout=WAIT_S).result().valid
            assert [each.group_id for each in listed] == ["seen"]


def test_acls_outlive_the_cluster(tmp_path: Path) -> None:
    wanted = [
        acl(ResourceType.TOPIC, "a*b, ü", AclOperation.DESCRIBE_CONFIGS),
        acl(ResourceType.GROUP, "g-", AclOperation.READ, pattern=ResourcePatternType.PREFIXED),
        acl(ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
    ]
    with embedded(1, data=tmp_path, **OPTIONS) as running:
        root = AdminClient(of_confluent(running, "root"))
        done(root.create_acls(wanted))
    with embedded(1, data=tmp_path, **OPTIONS) as running:
        every = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            ALICE,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        root = AdminClient(of_confluent(running, "root"))
        found = root.describe_acls(every).result(WAIT_S)
        assert {str(each) for each in found} == {str(each) for each in wanted}


def test_cluster_without_authorizer_has_no_acls() -> None:
    with embedded(1) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for future in admin.create_acls([acl(ResourceType.TOPIC, "t", AclOperation.READ)]).values():
            with pytest.raises(KafkaException) as refused:
                future.result(WAIT_S)
            assert code_of(refused.value) == KafkaError.SECURITY_DISABLED


def told(running: Running, user: str, group: str) -> set[str]:
    admin = AdminClient(of_confluent(running, user))
    described = admin.describe_consumer_groups([group], include_authorized_operations=True)
    return {each.name for each in described[group].result(WAIT_S).authorized_operations}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_a_group_are_told_what_they_may_do_to_it(cluster: Running, protocol: str) -> None:
    group, topic = f"told-{protocol}", f"topic-{protocol}"
    create(cluster, topic)
    rights = (
        acl(ResourceType.GROUP, group, AclOperation.READ),
        acl(ResourceType.TOPIC, topic, AclOperation.READ),
    )
    with granted(cluster, *rights):
        own = {**of_confluent(cluster, "alice"), "group.id": group, "group.protocol": protocol}
        with closing(Consumer(own)) as consumer:
            consumer.subscribe([topic])
            wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "has joined")
            operations = {user: told(cluster, user, group) for user in USERS}
    assert operations == {"alice": {"READ", "DESCRIBE"}, "root": {"READ", "DESCRIBE", "DELETE"}}
