"""The tool on an Apache Kafka 4.3.1 with TLS, client certificates, logins and ACLs."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

import pytest

from harness.certificates import PASSWORD, as_jks
from restow.cli.app import run
from restow.cli.shared.connection import Manner, settings_for
from restow.client import BrokerError, KafkaAdmin, NewTopic, Quorum, connected
from restow.execute.run.lock import GROUP
from restow.execute.run.start import readiness
from restow.model import Move, Plan, TopicPartition
from restow.runtime.clock import SystemClock
from restow.snapshot import capture
from restow.verify import blocking
from tests.apache.secured_cluster import LISTENERS, WORD, Secured, login, property_file, secured_kafka
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from restow.model import Verdict

pytestmark = [pytest.mark.apache, pytest.mark.full]

T = TypeVar("T")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with ExitStack() as stack:
        with needs_kafka():
            made = stack.enter_context(secured_kafka(folder))
        on(
            made.cluster.at["PLAINTEXT"],
            {},
            folder,
            lambda admin: admin.create_topics([NewTopic(name="t", by_hand={0: (1,)})]),
        )
        yield made


def on(
    bootstrap: str, properties: Mapping[str, str], folder: Path, work: Callable[[KafkaAdmin], Awaitable[T]]
) -> T:
    settings = settings_for(bootstrap, Manner(command_config=property_file(folder, properties)))

    async def main() -> T:
        async with connected(settings) as admin:
            return await work(admin)

    return asyncio.run(main())


def lists_topics(bootstrap: str, config: str, capsys: pytest.CaptureFixture[str]) -> bool:
    code = run(["topics", "list", "-b", bootstrap, "--command-config", config, "--json"])
    said = capsys.readouterr()
    assert "s3cret" not in said.out + said.err
    assert code == 0, said.err
    return "t" in [each["name"] for each in json.loads(said.out)["topics"]]


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_tls_with_a_client_certificate_succeeds(
    secured: Secured, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = secured.made
    trust, own = made.trust_store, made.client_store
    if kind == "JKS":
        trust, own = as_jks(trust), as_jks(own)
    elif kind == "PEM":
        trust, own = made.authority, made.client_encrypted
    properties = {"security.protocol": "SSL", "ssl.key.password": PASSWORD}
    for which, store in (("truststore", trust), ("keystore", own)):
        properties[f"ssl.{which}.type"] = kind
        properties[f"ssl.{which}.location"] = str(store)
        if kind != "PEM":
            properties[f"ssl.{which}.password"] = PASSWORD
    assert lists_topics(secured.cluster.at["TLS"], property_file(tmp_path, properties), capsys)


@pytest.mark.parametrize(
    ("mechanism", "listener"),
    [
        ("SCRAM-SHA-256", "CLEAR"),
        ("SCRAM-SHA-512", "CLEAR"),
        ("SCRAM-SHA-256", "LOGIN"),
        ("SCRAM-SHA-512", "LOGIN"),
        ("PLAIN", "LOGIN"),
    ],
)
def test_login_succeeds_and_logs_no_password(
    secured: Secured,
    mechanism: str,
    listener: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The whole log is searched, too."""
    password = PASSWORD if mechanism == "PLAIN" else WORD
    properties = login("root", mechanism, LISTENERS[listener], password)
    if listener == "LOGIN":
        properties |= secured.trust()
    assert lists_topics(secured.cluster.at[listener], property_file(tmp_path, properties), capsys)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("kafka").setLevel(logging.DEBUG)
        view = on(secured.cluster.at[listener], properties, tmp_path, lambda admin: admin.describe_cluster())
    assert [node.id for node in view.nodes] == [1]
    assert "KafkaAdminClient" in caplog.text
    assert "s3cret" not in caplog.text
    assert PASSWORD not in caplog.text


def refused(bootstrap: str, config: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["topics", "list", "-b", bootstrap, "--command-config", config]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "wr0ng" not in said.err
    return said.err


def test_wrong_password_is_refused_and_not_shown(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for mechanism in ("SCRAM-SHA-256", "PLAIN"):
        config = property_file(tmp_path, login("root", mechanism, "SASL_PLAINTEXT", "wr0ng"))
        assert "refuses the login" in refused(secured.cluster.at["CLEAR"], config, capsys)


def test_tls_failure_is_named(secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = secured.cluster.at
    nobody_vouches = property_file(tmp_path, {"security.protocol": "SSL"})
    assert "CERTIFICATE_VERIFY_FAILED" in refused(at["TLS"], nobody_vouches, capsys)
    not_tls = property_file(tmp_path, {"security.protocol": "SSL", **secured.trust()})
    assert "no TLS connection" in refused(at["PLAINTEXT"], not_tls, capsys)
    # With TLS 1.3 a client learns only after the handshake that its certificate was required.
    assert "127.0.0.1" in refused(at["TLS"], not_tls, capsys)
    assert "--command-config" in refused(at["LOGIN"], property_file(tmp_path, {}), capsys)


def test_missing_permissions_are_named_before_the_first_move(secured: Secured, tmp_path: Path) -> None:
    properties = login("alice", "SCRAM-SHA-512", "SASL_PLAINTEXT")
    at = secured.cluster.at["CLEAR"]
    grant(secured.cluster.at["PLAINTEXT"], topic=("DESCRIBE", "DESCRIBE_CONFIGS"), cluster=("DESCRIBE",))
    eventually(
        lambda: on(at, properties, tmp_path, _told) == ({"DESCRIBE"}, {"DESCRIBE", "DESCRIBE_CONFIGS"})
    )
    verdict = on(at, properties, tmp_path, _preflight)
    (missing,) = [check.evidence for check in blocking(verdict) if check.name == "permissions"]
    for words in ("ALTER on the cluster", "ALTER_CONFIGS on the cluster", "ALTER_CONFIGS on topic t"):
        assert words in missing
    grant(
        secured.cluster.at["PLAINTEXT"],
        topic=("ALTER_CONFIGS",),
        cluster=("ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"),
    )
    eventually(lambda: blocking(on(at, properties, tmp_path, _preflight)) == ())


def test_marking_a_run_needs_read_on_its_group(secured: Secured, tmp_path: Path) -> None:
    properties = login("alice", "SCRAM-SHA-512", "SASL_PLAINTEXT")
    at = secured.cluster.at["CLEAR"]
    assert on(at, properties, tmp_path, _marked) == "GROUP_AUTHORIZATION_FAILED"
    grant(secured.cluster.at["PLAINTEXT"], group=("READ",))
    eventually(lambda: on(at, properties, tmp_path, _marked) == "marked")


async def _marked(admin: KafkaAdmin) -> str:
    group_lock = admin.group_lock(GROUP, "alice-at-home", b"")
    async with group_lock.kept():
        try:
            assert await group_lock.taken() is None
        except BrokerError as error:
            return error.code.name
    return "marked"


def test_quorum_is_reported(secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap = secured.cluster.at["PLAINTEXT"]
    found = on(bootstrap, {}, tmp_path, lambda admin: admin.describe_metadata_quorum())
    assert found == Quorum(leader=1, voters=(1,))
    assert on(bootstrap, {}, tmp_path, lambda admin: capture(admin, SystemClock())).controller == 1
    assert run(["broker-check", "1", "-b", bootstrap]) == 1
    assert "it is a voter of the metadata quorum (1)" in capsys.readouterr().out


async def _told(admin: KafkaAdmin) -> tuple[set[str], set[str]]:
    told = await admin.permissions(["t"])
    return set(told.cluster or ()), set(told.topics["t"] or ())


async def _preflight(admin: KafkaAdmin) -> Verdict:
    snapshot = await capture(admin, SystemClock())
    move = Move(partition=TopicPartition("t", 0), before=(1,), after=(1,))
    plan = Plan(cluster_id=snapshot.cluster_id, created_ms=0, moves=(move,))
    return await readiness(admin, plan, snapshot)


def grant(
    bootstrap: str, *, topic: tuple[str, ...] = (), cluster: tuple[str, ...] = (), group: tuple[str, ...] = ()
) -> None:
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        KafkaAdminClient,
        ResourcePattern,
        ResourceType,
    )

    wanted = [(ResourcePattern(ResourceType.TOPIC, "t"), each) for each in topic]
    wanted += [(ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"), each) for each in cluster]
    wanted += [(ResourcePattern(ResourceType.GROUP, GROUP), each) for each in group]
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.create_acls(
            [
                ACL("User:alice", "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)
                for pattern, operation in wanted
            ]
        )
    finally:
        client.close()


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to be so"
