"""Clients reach an embedded cluster over TLS, and brokers each other, with certificates and with logins."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer

from harness.certificates import PASSWORD, Certificates, certificates
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROTOCOLS = {"TLS": "SSL", "CERTIFIED": "SSL", "LOGIN": "SASL_SSL"}
USER = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "alice", "sasl_plain_password": "secret"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    with needs_kafka():
        return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def cluster(made: Certificates) -> Iterator[Running]:
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(made.server_encrypted),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(made.authority),
        "listener.name.certified.ssl.client.auth": "required",
        "inter.broker.listener.name": "CERTIFIED",
    }
    listeners = ("LOGIN:SASL_SSL", "TLS:SSL", "CERTIFIED:SSL")
    with embedded(3, listeners=listeners, users={"alice": "secret"}, properties=properties) as running:
        yield running


def of_kafka_python(made: Certificates, listener: str, *, certified: bool) -> dict[str, Any]:
    own = {"ssl_certfile": str(made.client), "ssl_keyfile": str(made.client)} if certified else {}
    return {
        "security_protocol": PROTOCOLS[listener],
        "ssl_cafile": str(made.authority),
        **own,
        **(USER if listener == "LOGIN" else {}),
    }


def of_confluent(made: Certificates, listener: str, *, certified: bool) -> dict[str, Any]:
    found = {"security.protocol": PROTOCOLS[listener], "ssl.ca.location": str(made.authority)}
    if certified:
        found |= {"ssl.certificate.location": str(made.client), "ssl.key.location": str(made.client)}
    if listener == "LOGIN":
        found |= {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice", "sasl.password": "secret"}
    return found


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_records_pass_between_clients_over_tls(cluster: Running, made: Certificates, listener: str) -> None:
    bootstrap = cluster.cluster.bootstrap_at(listener)
    certified = listener == "CERTIFIED"
    options = of_kafka_python(made, listener, certified=certified)
    large = bytes(range(256)) * 3_000
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all", **options)) as producer:
        producer.send(listener, large).get(timeout=WAIT_S)
    cluster.wait_until_known(listener)
    confluent = Producer(
        {"bootstrap.servers": bootstrap, **of_confluent(made, listener, certified=certified)}
    )
    confluent.produce(listener, b"confluent")
    assert confluent.flush(WAIT_S) == 0

    async def send() -> None:
        context = ssl.create_default_context(cafile=str(made.authority))
        if certified:
            context.load_cert_chain(str(made.client))
        more = {name: value for name, value in options.items() if not name.startswith("ssl_")}
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, ssl_context=context, **more) as producer:
            await producer.send_and_wait(listener, b"aiokafka")

    asyncio.run(send())
    found: list[bytes] = []
    consumer = KafkaConsumer(listener, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **options)
    with closing(consumer):

        def read() -> bool:
            for records in consumer.poll(timeout_ms=500).values():
                found.extend(record.value for record in records)
            return len(found) >= 3

        wait_until(read, "the records of all three clients")
    assert found == [large, b"confluent", b"aiokafka"]


def test_replicas_follow_over_tls(cluster: Running, made: Certificates) -> None:
    from kafka.admin import KafkaAdminClient, NewTopic

    options = of_kafka_python(made, "TLS", certified=False)
    bootstrap = cluster.cluster.bootstrap_at("TLS")
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap, **options)) as admin:
        admin.create_topics([NewTopic("followed", 1, 3)])
    cluster.wait_until_known("followed")
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all", **options)) as producer:
        for number in range(20):
            producer.send("followed", bytes(50_000 + number)).get(timeout=WAIT_S)
    wait_until(lambda: cluster.in_sync("followed") == {0, 1, 2}, "all replicas are in sync")


@pytest.mark.parametrize(("listener", "trusts"), [("CERTIFIED", True), ("TLS", False)])
def test_client_is_refused_without_certificate_or_refuses_a_foreign_broker(
    cluster: Running, made: Certificates, listener: str, trusts: bool
) -> None:
    seen: list[KafkaError] = []
    options = of_confluent(made, listener, certified=False)
    if not trusts:
        options["ssl.ca.location"] = str(made.folder / "client.crt")
    bootstrap = cluster.cluster.bootstrap_at(listener)
    client = Producer({"bootstrap.servers": bootstrap, "error_cb": seen.append, **options})
    wait_until(lambda: bool(client.poll(0.1)) or bool(seen), "the connection fails")
    assert seen[0].code() in (KafkaError._SSL, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    client.produce("t", b"never")
    assert client.flush(2) == 1
    client.purge()


def test_clients_trust_the_certificates_that_a_cluster_has_made(tmp_path: Path) -> None:
    """A later cluster with the same folder shows the same ones, so clients go on."""
    folder = tmp_path / "certificates"
    for word in (b"first", b"second"):
        with embedded(2, tls=folder) as running:
            certificates = running.cluster.certificates
            assert certificates is not None
            options = {"security_protocol": "SSL", "ssl_cafile": str(certificates.authority)}
            with closing(
                KafkaProducer(bootstrap_servers=running.bootstrap, acks="all", **options)
            ) as producer:
                assert producer.send("t", word).get(timeout=WAIT_S).offset == 0
