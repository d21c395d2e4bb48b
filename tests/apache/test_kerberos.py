"""Commands that log in by Kerberos, with MIT's KDC and an Apache Kafka 4.3.1 that checks ACLs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from harness.apache import Cluster, apache_kafka
from harness.brokers import wait_for
from harness.jars import KAFKA_4
from harness.jvm import SMALL
from harness.kerberos import REALM, Realm, kerberos
from harness.process import HOST
from harness.tools import Tools
from restow._frozen import frozen
from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.client.property_files import read_properties
from restow.pipeline.topic import connector_options
from tests.apache.secured_cluster import property_file
from tests.apache.traffic import ANY_FILL
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    LogIn = Callable[["Home", Path, str], "User"]

pytestmark = [pytest.mark.apache, pytest.mark.full]

_PATIENCE_S = 300
_SERVICE = f"kafka/{HOST}"
_NOBODY = f"{HOST}:1"
"""An address at which nobody answers: a command is not to come so far."""
_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


@dataclass(frozen=True, slots=True)
class Home:
    """A realm, and the keytabs of its principals. The cluster lets `ops` do everything, `guest` nothing."""

    realm: Realm
    keytabs: dict[str, Path]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with ExitStack() as stack:
        with needs_kafka():
            realm = stack.enter_context(kerberos(tmp_path_factory.mktemp("realm")))
        yield Home(realm, {name: realm.keytab(name) for name in (_SERVICE, "ops", "guest", "reader")})


@pytest.fixture(scope="module")
def cluster(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start two brokers with an open listener, too."""
    with ExitStack() as stack:
        with needs_kafka():
            made = stack.enter_context(
                apache_kafka(
                    tmp_path_factory.mktemp("kafka"),
                    nodes=2,
                    version=KAFKA_4,
                    settings=_server_settings(home.keytabs[_SERVICE]),
                    options=(*SMALL, f"-Djava.security.krb5.conf={home.realm.config}"),
                    listeners={"KERBEROS": "SASL_PLAINTEXT"},
                )
            )
        yield made


def _server_settings(keytab: Path) -> dict[str, str]:
    login = (
        f'{_MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{_SERVICE}@{REALM}";'
    )
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ops",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.kerberos.gssapi.sasl.jaas.config": login,
    }


@frozen
class User:
    """Somebody with these client properties and, if any, a ticket."""

    realm: Realm
    config: str
    ticket: Path | None = None

    def does(self, bootstrap: str, *arguments: str) -> str:
        """Return the output of a command that succeeds."""
        code, out, err = self.run(bootstrap, *arguments)
        assert code == 0, err
        return out

    def fails(self, bootstrap: str, *arguments: str) -> str:
        """Return the errors of a command that fails."""
        code, _, err = self.run(bootstrap, *arguments)
        assert code == 1, err
        return err

    def run(self, bootstrap: str, *arguments: str) -> tuple[int, str, str]:
        """Return a command's exit code, output and errors."""
        command = [sys.executable, "-m", "restow", *arguments]
        command += ["-b", bootstrap, "--command-config", self.config]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
            env={**os.environ, **self.realm.environment(self.ticket)},
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr


def by_ticket(home: Home, folder: Path, name: str, service: str = "kafka") -> User:
    ticket = home.realm.ticket(home.keytabs[name], name)
    return User(realm=home.realm, config=properties(folder, service=service), ticket=ticket)


def by_keytab(home: Home, folder: Path, name: str, keytab: Path | None = None) -> User:
    """Return a user who has the ticket of somebody else, too."""
    given = f'useKeyTab=true keyTab="{keytab or home.keytabs[name]}" principal="{name}@{REALM}"'
    other = home.realm.ticket(home.keytabs["guest"], "guest")
    config = properties(folder, login=f"{_MODULE} required {given};")
    return User(realm=home.realm, config=config, ticket=other)


both_ways = pytest.mark.parametrize("log_in", [by_ticket, by_keytab])


def properties(folder: Path, *, service: str = "kafka", login: str = "") -> str:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": service,
    }
    return property_file(folder, given | ({"sasl.jaas.config": login} if login else {}))


def create(cluster: Cluster, topic: str) -> None:
    """Create it with one replica, on broker 1, by the listener that wants no login."""
    new = NewTopic(name=topic, by_hand={0: (1,)})
    settings = ConnectionSettings(bootstrap=cluster.bootstrap)
    assert ask_cluster(settings, lambda admin: admin.create_topics([new])) == {topic: None}


def replicas(cluster: Cluster, topic: str) -> tuple[int, ...]:
    settings = ConnectionSettings(bootstrap=cluster.bootstrap)
    [found] = ask_cluster(settings, lambda admin: admin.describe_topics([topic]))
    return found.partitions[0].replicas


def until_planned(user: User, at: str, topic: str, plan: str) -> None:
    """Plan to move the topic away from broker 1, as soon as brokers know it."""
    drain = ("plan", "drain", "1", "--topics", topic, *ANY_FILL, "-o", plan)
    wait_for("the topic is known", lambda: user.run(at, *drain)[0] == 0, _PATIENCE_S)


@both_ways
def test_cluster_is_shown_and_a_plan_made_and_executed_with_a_login_by_kerberos(
    home: Home, cluster: Cluster, log_in: LogIn, tmp_path: Path
) -> None:
    ops, at = log_in(home, tmp_path, "ops"), cluster.at["KERBEROS"]
    topic, plan = f"moved-{log_in.__name__}", str(tmp_path / "plan.json")
    create(cluster, topic)
    status = json.loads(ops.does(at, "cluster", "status", "--json"))
    assert [each["id"] for each in status["brokers"]] == [1, 2]
    until_planned(ops, at, topic, plan)
    ops.does(at, "execute", plan, "--throttle", "none", "--yes", "--journal", str(tmp_path / "journal"))
    wait_for("it has moved", lambda: replicas(cluster, topic) == (2,), _PATIENCE_S)


@both_ways
def test_kafkas_own_client_logs_in_with_the_same_properties(
    home: Home, cluster: Cluster, log_in: LogIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does Spark's connector, which is told them as here.

    Java asks for the ticket of the host name that it finds for an address: here the address itself.
    """
    ops, at = log_in(home, tmp_path, "ops"), cluster.at["KERBEROS"]
    topic = f"shown-{log_in.__name__}"
    create(cluster, topic)
    given = {name: each.value for name, each in read_properties(ops.config).items()}
    options = connector_options(at, given)
    config = property_file(tmp_path, {name.removeprefix("kafka."): value for name, value in options.items()})
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{ops.ticket}")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 127.0.0.1\n", encoding="utf-8")
    options_of_java = f"-Djava.security.krb5.conf={home.realm.config} -Djdk.net.hosts.file={hosts}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options_of_java)
    listed = ("--bootstrap-server", at, "--command-config", config, "--list")
    tools = Tools(KAFKA_4)
    wait_for("it is known", lambda: topic in tools.run("kafka-topics", *listed).splitlines(), _PATIENCE_S)


@both_ways
def test_status_names_the_acls_that_a_kerberos_principal_lacks(
    home: Home, cluster: Cluster, log_in: LogIn, tmp_path: Path
) -> None:
    said = log_in(home, tmp_path, "guest").does(cluster.at["KERBEROS"], "cluster", "status", "--json")
    warnings = " ".join(json.loads(said)["warnings"])
    assert "CLUSTER_AUTHORIZATION_FAILED" in warnings
    assert "it needs DESCRIBE on the cluster" in warnings


def test_execute_is_refused_to_a_kerberos_principal_that_may_only_look(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    at, plan = cluster.at["KERBEROS"], str(tmp_path / "plan.json")
    create(cluster, "kept")
    until_planned(by_ticket(home, tmp_path, "ops"), at, "kept", plan)
    reader = by_ticket(home, tmp_path, "reader")
    allowed = ["--add", "--allow-principal", "User:reader"]
    allowed += ["--operation", "Describe", "--operation", "DescribeConfigs"]
    for resource in (["--cluster"], ["--topic", "*"]):
        Tools(KAFKA_4).run("kafka-acls", "--bootstrap-server", cluster.bootstrap, *allowed, *resource)

    def names_the_missing_acl() -> bool:
        execute = ("execute", plan, "--throttle", "none", "--yes", "--journal", str(tmp_path / "journal"))
        code, _, said = reader.run(at, *execute)
        return code == 1 and "ALTER on the cluster" in said

    wait_for("the brokers know the ACLs", names_the_missing_acl, _PATIENCE_S)
    assert replicas(cluster, "kept") == (1,)


@pytest.mark.parametrize(("service", "host"), [("kafak", HOST), ("kafka", "localhost")])
def test_command_names_a_server_that_kerberos_does_not_know(
    home: Home, cluster: Cluster, service: str, host: str, tmp_path: Path
) -> None:
    port = cluster.at["KERBEROS"].rpartition(":")[2]
    said = by_ticket(home, tmp_path, "ops", service).fails(f"{host}:{port}", "cluster", "status")
    assert f"no ticket for {service}/{host} (Server {service}/{host}@{REALM} not found" in said
    assert "check sasl.kerberos.service.name" in said


def test_command_reports_that_the_broker_refuses_a_ticket_for_another_service(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    home.realm.keytab(f"another/{HOST}")
    said = by_ticket(home, tmp_path, "ops", "another").fails(cluster.at["KERBEROS"], "cluster", "status")
    assert "refuses the login" in said
    assert "sasl.kerberos.service.name" in said


def test_command_without_a_ticket_says_so_before_it_asks_a_broker(home: Home, tmp_path: Path) -> None:
    said = User(realm=home.realm, config=properties(tmp_path)).fails(_NOBODY, "cluster", "status")
    assert "there is no Kerberos ticket" in said
    assert "run kinit" in said


def test_command_names_a_keytab_with_an_old_key(home: Home, tmp_path: Path) -> None:
    old = home.realm.keytab("changed")
    home.realm.run("kadmin.local", "cpw", "-randkey", "changed")
    said = by_keytab(home, tmp_path, "changed", old).fails(_NOBODY, "cluster", "status")
    assert f"no ticket for changed@{REALM} by the keytab '{old}' (" in said
    assert "its present key" in said


def test_command_names_a_principal_that_the_keytab_lacks(home: Home, tmp_path: Path) -> None:
    wrong = by_keytab(home, tmp_path, "ops", home.keytabs["guest"])
    assert f"no ticket for ops@{REALM} by the keytab" in wrong.fails(_NOBODY, "cluster", "status")


def test_command_reports_that_no_kdc_answers(home: Home, tmp_path: Path) -> None:
    config = tmp_path / "krb5.conf"
    config.write_text(re.sub(rf"kdc = {HOST}:\d+", f"kdc = {_NOBODY}", home.realm.config.read_text()))
    away = replace(by_keytab(home, tmp_path, "ops"), realm=replace(home.realm, config=config))
    said = away.fails(_NOBODY, "cluster", "status")
    assert "Cannot contact any KDC" in said
    assert "check krb5.conf" in said
