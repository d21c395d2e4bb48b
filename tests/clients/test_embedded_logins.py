"""Clients log in to an embedded cluster, and brokers to each other, by every mechanism."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from base64 import urlsafe_b64encode
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import (
    KafkaAdminClient,
    NewTopic,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError as KafkaPythonError

from tests.clients.embedded import WAIT_S, Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = 'w0nder, =l"and\\ü'  # noqa: S105
PROTOCOL = "SASL_PLAINTEXT"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS = (f"LOGIN:{PROTOCOL}", "PLAINTEXT")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3, listeners=LISTENERS, users={"alice": PASSWORD}) as running:
        yield running


def of_kafka_python(mechanism: str, user: str = "alice", password: str = PASSWORD) -> dict[str, Any]:
    return {
        "security_protocol": PROTOCOL,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def of_confluent(mechanism: str, user: str = "alice", password: str = PASSWORD) -> dict[str, Any]:
    return {
        "security.protocol": PROTOCOL,
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_records_pass_between_clients_that_have_logged_in(cluster: Running, mechanism: str) -> None:
    topic = f"by-{mechanism}"
    with closing(
        KafkaProducer(bootstrap_servers=cluster.bootstrap, **of_kafka_python(mechanism))
    ) as producer:
        producer.send(topic, b"kafka-python").get(timeout=WAIT_S)
    cluster.wait_until_known(topic)
    confluent = Producer({"bootstrap.servers": cluster.bootstrap, **of_confluent(mechanism)})
    confluent.produce(topic, b"confluent")
    assert confluent.flush(WAIT_S) == 0

    async def send() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, **of_kafka_python(mechanism)
        ) as producer:
            await producer.send_and_wait(topic, b"aiokafka")

    asyncio.run(send())
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        **of_kafka_python(mechanism),
    )
    found: list[bytes] = []
    with closing(consumer):

        def read() -> bool:
            for records in consumer.poll(timeout_ms=500).values():
                found.extend(record.value for record in records)
            return len(found) >= 3

        wait_until(read, "the records of all three clients")
    assert found == [b"kafka-python", b"confluent", b"aiokafka"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "another"), ("mallory", PASSWORD)])
def test_wrong_password_or_user_is_refused(
    cluster: Running, mechanism: str, user: str, password: str
) -> None:
    seen: list[KafkaError] = []
    client = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "error_cb": seen.append,
            **of_confluent(mechanism, user, password),
        }
    )
    wait_until(lambda: bool(client.poll(0.1)) or bool(seen), "the client learns that it is refused")
    assert seen[0].code() == KafkaError._AUTHENTICATION
    assert password not in str(seen[0])


def test_brokers_log_in_to_each_other_by_scram(tmp_path: Path) -> None:
    """The brokers' credential is in their configs, because the store has none before they can log in."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    properties = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": (
            f'{module} username="broker" password="b" user_broker="b";'
        ),
    }
    with embedded(3, listeners=LISTENERS, users={"alice": PASSWORD}, properties=properties) as running:
        options = of_kafka_python("PLAIN")
        with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap, **options)) as admin:
            admin.create_topics([NewTopic("t", 1, 3)])
        running.wait_until_known("t")
        with closing(KafkaProducer(bootstrap_servers=running.bootstrap, acks="all", **options)) as producer:
            producer.send("t", b"to three replicas").get(timeout=WAIT_S)
        wait_until(lambda: running.in_sync("t") == {0, 1, 2}, "all replicas are in sync")


def token(secret: str | None, name: str = "alice", lifetime_s: float = 3600) -> tuple[str, float]:
    """Return a token, signed with the secret if there is one, and its end."""

    def part(document: Any) -> str:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        return urlsafe_b64encode(data).rstrip(b"=").decode()

    end = time.time() + lifetime_s
    algorithm = "none" if secret is None else "HS256"
    text = f"{part({'alg': algorithm})}.{part({'sub': name, 'exp': end, 'iat': end - lifetime_s})}"
    signature = b"" if secret is None else hmac.digest(secret.encode(), text.encode(), "sha256")
    return f"{text}.{part(signature)}", end


@pytest.mark.parametrize("secret", [None, "shared"])
def test_clients_log_in_by_tokens(secret: str | None) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    option = "" if secret is None else f' hmacSecret="{secret}"'
    properties = {
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.login.oauthbearer.sasl.jaas.config": f"{module}{option};",
    }
    with embedded(1, listeners=LISTENERS, users={"alice": PASSWORD}, properties=properties) as running:
        options = {
            "bootstrap.servers": running.bootstrap,
            "security.protocol": PROTOCOL,
            "sasl.mechanism": "OAUTHBEARER",
        }
        client = Producer({**options, "oauth_cb": lambda _: token(secret)})
        client.produce("t", b"by token")
        assert client.flush(WAIT_S) == 0
        seen: list[KafkaError] = []
        bad = token("another")
        refused = Producer({**options, "oauth_cb": lambda _: bad, "error_cb": seen.append})
        wait_until(lambda: bool(refused.poll(0.1)) or bool(seen), "the client learns that it is refused")
        assert seen[0].code() == KafkaError._AUTHENTICATION


def test_client_without_login_is_not_served(cluster: Running) -> None:
    with pytest.raises(KafkaPythonError):
        KafkaAdminClient(bootstrap_servers=cluster.bootstrap, bootstrap_timeout_ms=2000)


def test_each_listener_answers_with_its_own_addresses(cluster: Running) -> None:
    for listener, logs_in in (("LOGIN", True), ("PLAINTEXT", False)):
        own = cluster.cluster.bootstrap_at(listener)
        options = of_kafka_python("PLAIN") if logs_in else {}
        with closing(KafkaAdminClient(bootstrap_servers=own.partition(",")[0], **options)) as admin:
            found = {f"{each['host']}:{each['port']}" for each in admin.describe_cluster()["brokers"]}
        assert found == set(own.split(","))
    assert (
        cluster.cluster.bootstrap_at("LOGIN")
        == cluster.bootstrap
        != cluster.cluster.bootstrap_at("plaintext")
    )


def may_log_in(running: Running, mechanism: str, user: str, password: str) -> bool:
    """Wait for what comes first: the list of brokers, or that the login is refused."""
    refused: list[KafkaError] = []
    client = Producer(
        {
            "bootstrap.servers": running.bootstrap,
            "error_cb": lambda error: (
                refused.append(error) if error.code() == KafkaError._AUTHENTICATION else None
            ),
            **of_confluent(mechanism, user, password),
        }
    )
    found: list[int] = []

    def look() -> bool:
        client.poll(0)
        with suppress(KafkaException):
            found.extend(client.list_topics(timeout=1).brokers)
        return bool(found or refused)

    wait_until(look, "the client is let in or refused")
    return bool(found)


def test_scram_credentials_are_kept_in_the_store(tmp_path: Path) -> None:
    def admin_of(running: Running) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=running.bootstrap, **of_kafka_python("PLAIN"))

    bob = "bob, =*"
    options: dict[str, Any] = {"listeners": LISTENERS, "users": {"alice": PASSWORD}, "data": tmp_path}
    with embedded(1, **options) as running, closing(admin_of(running)) as admin:
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion(bob, mechanism, f"of {mechanism.name}")
            assert admin.alter_user_scram_credentials([upsertion]) == {bob: None}
        assert may_log_in(running, "SCRAM-SHA-256", bob, "of SCRAM_SHA_256")
        assert not may_log_in(running, "SCRAM-SHA-256", bob, "of SCRAM_SHA_512")
        deletion = UserScramCredentialDeletion(bob, ScramMechanism.SCRAM_SHA_256)
        assert admin.alter_user_scram_credentials([deletion]) == {bob: None}
        assert not may_log_in(running, "SCRAM-SHA-256", bob, "of SCRAM_SHA_256")
    with embedded(1, **options) as running, closing(admin_of(running)) as admin:
        assert may_log_in(running, "SCRAM-SHA-512", bob, "of SCRAM_SHA_512")
        described = admin.describe_user_scram_credentials()
        infos = [{"mechanism": ScramMechanism.SCRAM_SHA_512, "iterations": 4096}]
        assert described == {bob: {"error": None, "credential_infos": infos}}
