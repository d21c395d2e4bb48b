"""Apache Kafka's own tools log in to an embedded cluster, and set users' credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.tools import Tools
from tests.clients.embedded import Running, embedded
from tests.conftest import needs_kafka
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

MODULES = "org.apache.kafka.common.security"
LOGINS = {
    "PLAIN": f'{MODULES}.plain.PlainLoginModule required username="alice" password="secret";',
    "SCRAM-SHA-512": f'{MODULES}.scram.ScramLoginModule required username="alice" password="secret";',
    "OAUTHBEARER": (
        f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    ),
}
OAUTH = {
    "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.login.connections.max.reauth.ms": "3600000",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    listeners = ("LOGIN:SASL_PLAINTEXT", "PLAINTEXT")
    with embedded(2, listeners=listeners, users={"alice": "secret"}, properties=OAUTH) as running:
        yield running


def client_file(folder: Path, mechanism: str, login: str) -> str:
    file = folder / "client.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
    )
    return str(file)


@pytest.mark.parametrize("version", often((KAFKA_4, KAFKA_VERSION), KAFKA_VERSION))
@pytest.mark.parametrize("mechanism", LOGINS)
def test_tools_log_in(cluster: Running, tmp_path: Path, mechanism: str, version: str) -> None:
    with needs_kafka():
        tools = Tools(version)
        tools.command("kafka-topics")
    topic = f"{mechanism}-{version}"
    where = ("--bootstrap-server", cluster.bootstrap)
    config = ("--command-config", client_file(tmp_path, mechanism, LOGINS[mechanism]))
    tools.run("kafka-topics", *where, *config, "--create", "--topic", topic)
    assert topic in tools.run("kafka-topics", *where, *config, "--list").split()


def test_credentials_set_by_kafkas_tool_are_good_for_a_login(cluster: Running, tmp_path: Path) -> None:
    with needs_kafka():
        tools = Tools(KAFKA_4)
        tools.command("kafka-configs")
    where = ("--bootstrap-server", cluster.bootstrap)
    config = ("--command-config", client_file(tmp_path, "PLAIN", LOGINS["PLAIN"]))
    added = "SCRAM-SHA-512=[iterations=8192,password=of bob]"
    user = ("--entity-type", "users", "--entity-name", "bob")
    tools.run("kafka-configs", *where, *config, "--alter", "--add-config", added, *user)
    login = LOGINS["SCRAM-SHA-512"].replace('"alice"', '"bob"').replace('"secret"', '"of bob"')
    config = ("--command-config", client_file(tmp_path, "SCRAM-SHA-512", login))
    tools.run("kafka-topics", *where, *config, "--list")
    config = ("--command-config", client_file(tmp_path, "SCRAM-SHA-512", login.replace("of bob", "wrong")))
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in tools.refused(
        "kafka-topics", *where, *config, "--list"
    )


def test_acls_set_by_kafkas_tool_let_a_user_in(tmp_path: Path) -> None:
    with needs_kafka():
        tools = Tools(KAFKA_VERSION)
        tools.command("kafka-acls")
    users = {"alice": "secret", "root": "secret"}
    with embedded(1, listeners=("SASL_PLAINTEXT",), users=users, super_users=("root",)) as running:
        where = ("--bootstrap-server", running.bootstrap)
        own = client_file(tmp_path, "PLAIN", LOGINS["PLAIN"])
        (tmp_path / "root").mkdir()
        root = client_file(tmp_path / "root", "PLAIN", LOGINS["PLAIN"].replace('"alice"', '"root"'))
        tools.run("kafka-topics", *where, "--command-config", root, "--create", "--topic", "orders")
        assert not tools.run("kafka-topics", *where, "--command-config", own, "--list").strip()
        grant = ("--add", "--allow-principal", "User:alice", "--operation", "Describe", "--topic", "ord")
        prefixed = ("--resource-pattern-type", "prefixed")
        tools.run("kafka-acls", *where, "--command-config", root, *grant, *prefixed)
        assert tools.run("kafka-topics", *where, "--command-config", own, "--list").split() == ["orders"]
        listed = tools.run("kafka-acls", *where, "--command-config", root, "--list")
        assert "principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW" in listed
        assert "ClusterAuthorizationException" in tools.refused(
            "kafka-acls", *where, "--command-config", own, "--list"
        )
