"""Apache Kafka 4.3.1 with an authorizer: the ACLs of `restow acls` are enough, and each is needed.

Also features of this version: cordoned log dirs, the controller of a quorum, logins by token.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import shlex
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, TypeVar

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from harness.tools import Tools
from restow.cli.app import run
from restow.client import ConfigResource, ConnectionSettings, NewTopic, connected
from restow.model.permissions import NEEDED, RUN, SNAPSHOT, Acl
from tests.apache.traffic import ANY_FILL
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from harness.apache import Cluster
    from restow.client import KafkaAdmin

pytestmark = [pytest.mark.apache, pytest.mark.full]

T = TypeVar("T")

PASSWORD = "open sesame"  # noqa: S105
MODULES = "org.apache.kafka.common.security"
USERS = (
    "seer",
    "runner",
    *(f"seer-without-{i}" for i in range(4)),
    *(f"runner-without-{i}" for i in range(9)),
)
IMPLIED = {"DESCRIBE": "ALTER", "DESCRIBE_CONFIGS": "ALTER_CONFIGS"}
"""Operations that Kafka grants with another one on the same resource."""
PLACES = {"cluster": "the cluster", "topic": "topic", "group": "the group"}


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roles")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
    listener = "listener.name.clear"
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        f"{listener}.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        f"{listener}.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {users};",
        f"{listener}.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    with ExitStack() as stack:
        with needs_kafka():
            listeners = {"CLEAR": "SASL_PLAINTEXT"}
            up = stack.enter_context(
                apache_kafka(
                    folder, nodes=2, version=KAFKA_4, settings=settings, listeners=listeners, log_dirs=2
                )
            )
        made = ask(up, lambda admin: admin.create_topics([NewTopic(name="t", by_hand={0: (1,), 1: (2,)})]))
        assert made == {"t": None}
        yield up


def ask(cluster: Cluster, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    async def main() -> T:
        async with connected(ConnectionSettings(bootstrap=cluster.at["PLAINTEXT"])) as admin:
            return await work(admin)

    return asyncio.run(main())


def login(folder: Path, user: str) -> str:
    """Return the property file of a user, with the password in a file of its own."""
    word, file = folder / "word", folder / f"{user}.properties"
    word.write_text(PASSWORD)
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username={user}\n"
        f"sasl.password.file={word}\n"
    )
    for each in (word, file):
        each.chmod(0o600)
    return str(file)


class Person:
    """A user at the command line."""

    def __init__(self, cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._flags = ["-b", cluster.at["CLEAR"], "--command-config", config]
        self._capsys = capsys

    def does(self, *arguments: str) -> tuple[int, str]:
        code = run([*arguments, *self._flags])
        said = self._capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        return code, said.out + said.err


def eventually(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, what


def grant_by_tool(cluster: Cluster, command: str, user: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the lines that `restow acls` prints, with Apache's own tool."""
    assert run(["acls", command, "--principal", f"User:{user}", "--json"]) == 0
    for line in json.loads(capsys.readouterr().out)["grants"]:
        tool, *arguments = shlex.split(line)
        assert tool == "kafka-acls.sh"
        arguments[arguments.index("HOST:PORT")] = cluster.at["PLAINTEXT"]
        Tools(KAFKA_4).run("kafka-acls", *arguments)


def grant(cluster: Cluster, user: str, acls: Sequence[Acl]) -> None:
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, KafkaAdminClient
    from kafka.admin import ResourcePattern as On
    from kafka.admin import ResourceType as Kind

    names = {"cluster": "kafka-cluster", "topic": "*"}
    with closing(KafkaAdminClient(bootstrap_servers=cluster.at["PLAINTEXT"])) as client:
        client.create_acls(
            [
                ACL(
                    f"User:{user}",
                    "*",
                    ACLOperation[each.operation],
                    ACLPermissionType.ALLOW,
                    On(Kind[each.on.upper()], each.name or names.get(each.on, "*")),
                )
                for each in acls
            ]
        )


def plan_of(folder: Path, person: Person) -> str:
    target, plan = folder / "request.json", folder / "plan.json"
    moves = [{"topic": "t", "partition": 0, "replicas": [2]}]
    target.write_text(json.dumps({"version": 1, "partitions": moves}))
    code, said = person.does("plan", "from-json", str(target), *ANY_FILL, "-o", str(plan))
    assert code == 0, said
    return str(plan)


def test_acls_of_snapshot_are_enough_to_look_and_to_plan(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grant_by_tool(cluster, "snapshot", "seer", capsys)
    seer = Person(cluster, login(tmp_path, "seer"), capsys)
    eventually(lambda: "Warning" not in seer.does("snapshot")[1], "its ACLs are known")
    plan = plan_of(tmp_path, seer)
    code, said = seer.does("verify", plan)
    assert (code, "AUTHORIZATION" in said) == (1, False), said
    for command in (["cluster", "status"], ["topics", "list"], ["topics", "describe", "t"], ["doctor"]):
        code, said = seer.does(*command)
        assert "AUTHORIZATION" not in said, said
        assert "Warning" not in said, said
    code, said = seer.does("execute", plan, "--throttle", "none", "--yes", "--journal", str(tmp_path / "j"))
    assert code == 1
    assert "ALTER on the cluster" in said


@pytest.mark.parametrize("number", range(len(SNAPSHOT)))
def test_snapshot_names_a_missing_acl(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    missing = SNAPSHOT[number]
    user = f"seer-without-{number}"
    grant(cluster, user, [each for each in SNAPSHOT if each != missing])
    person = Person(cluster, login(tmp_path, user), capsys)
    words = f"{missing.operation} on {PLACES[missing.on]}"
    if missing.operation == "DESCRIBE" and missing.on == "topic":
        words = "cannot be seen, because DESCRIBE on"

    def only_that_is_missing() -> bool:
        said = person.does("snapshot")[1]
        named = [each for each in SNAPSHOT if f"{each.operation} on {PLACES[each.on]}" in said]
        return words in said and all(each in (missing, SNAPSHOT[2]) for each in named)

    eventually(only_that_is_missing, words)


def test_acls_of_execute_are_enough_for_a_run_and_its_undo(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grant_by_tool(cluster, "execute", "runner", capsys)
    runner = Person(cluster, login(tmp_path, "runner"), capsys)
    eventually(lambda: "Warning" not in runner.does("snapshot")[1], "its ACLs are known")
    plan = plan_of(tmp_path, runner)
    journal = ["--journal", str(tmp_path / "journal")]
    eventually(lambda: runner.does("execute", plan, "--check", *journal)[0] == 0, "it may begin")
    code, said = runner.does("execute", plan, "--throttle", "10MB/s", "--yes", "--json", *journal)
    assert code == 0, said
    assert "cannot be marked" not in said
    assert ask(cluster, replicas) == [(2,), (2,)]
    code, said = runner.does("verify", plan, *journal)
    assert code == 0, said
    code, said = runner.does("undo", "--yes", "--throttle", "none", *journal)
    assert code == 0, said
    assert ask(cluster, replicas) == [(1,), (2,)]


async def replicas(admin: KafkaAdmin) -> list[tuple[int, ...]]:
    (topic,) = await admin.describe_topics(["t"])
    return [each.replicas for each in topic.partitions]


def needed_for_itself(acl: Acl) -> bool:
    """Return whether no other ACL of a run implies it, and whether a run refuses to begin without it."""
    others = {(each.on, each.operation) for each in RUN}
    return not acl.optional and (acl.on, IMPLIED.get(acl.operation, "")) not in others


@pytest.mark.parametrize("number", [at for at, each in enumerate(RUN) if needed_for_itself(each)])
def test_execute_refuses_to_begin_and_names_a_missing_acl(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    missing, user = RUN[number], f"runner-without-{number}"
    grant(cluster, user, [each for each in RUN if each != missing])
    person = Person(cluster, login(tmp_path, user), capsys)
    everything = Person(cluster, login(tmp_path, "runner"), capsys)
    grant(cluster, "runner", RUN)
    eventually(lambda: "Warning" not in everything.does("snapshot")[1], "the ACLs of the other are known")
    plan = plan_of(tmp_path, everything)
    words = f"{missing.operation} on {PLACES[missing.on]}"
    if missing.operation == "DESCRIBE":
        words = "t-0 cannot be seen, because DESCRIBE on its topic is not allowed"
    arguments = [plan, "--throttle", "none", "--yes", "--journal", str(tmp_path / "journal")]

    def refused() -> bool:
        code, said = person.does("execute", *arguments)
        assert code != 0, said
        return words in said

    eventually(refused, words)
    assert ask(cluster, replicas) == [(1,), (2,)]
    assert ask(cluster, lambda admin: admin.list_partition_reassignments()) == {}


def test_snapshot_has_cordoned_log_dirs(
    cluster: Cluster, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(folder / "node-1" / "data-1")
    of = ConfigResource("broker", "1")
    assert ask(cluster, lambda admin: admin.incremental_alter_configs({of: {"cordoned.log.dirs": path}})) == {
        of: None
    }

    async def cordoned(admin: KafkaAdmin) -> list[str]:
        found = await admin.describe_log_dirs([1])
        return [each.path for each in found[1].log_dirs if each.cordoned]  # type: ignore[union-attr]

    eventually(lambda: ask(cluster, cordoned) == [path], "the log dir is cordoned")
    assert run(["cluster", "status", "-b", cluster.at["PLAINTEXT"]]) == 0
    assert "broker 1, cordoned log dirs:" in re.sub(r"\s+", " ", capsys.readouterr().out)
    assert ask(cluster, lambda admin: admin.incremental_alter_configs({of: {"cordoned.log.dirs": None}})) == {
        of: None
    }
    eventually(lambda: ask(cluster, cordoned) == [], "it is not cordoned any more")


def test_status_names_the_leader_of_the_quorum_at_every_call(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker of a quorum names a random controller; of ten answers, all would have to agree by chance."""
    quorum = ask(cluster, lambda admin: admin.describe_metadata_quorum())
    assert quorum is not None
    assert quorum.leader is not None
    for _ in range(10):
        assert run(["cluster", "status", "--json", "-b", cluster.at["PLAINTEXT"]]) == 0
        assert json.loads(capsys.readouterr().out)["controller"] == quorum.leader


def test_login_by_token_succeeds(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(cluster, "olive", NEEDED["topics list"])
    module = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"
    file = tmp_path / "client.properties"
    base = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
    file.write_text(f'{base}sasl.jaas.config={module} required unsecuredLoginStringClaim_sub="olive";\n')
    olive = Person(cluster, str(file), capsys)

    def sees_the_topic() -> bool:
        code, said = olive.does("topics", "list", "--json")
        assert code == 0, said
        return '"t"' in said

    eventually(sees_the_topic, "olive sees the topic")
    token = tmp_path / "token"
    token.write_text("a.b.c")
    file.write_text(f"{base}sasl.oauthbearer.token.endpoint.url={token.as_uri()}\n")
    code, said = olive.does("topics", "list")
    assert code == 1
    assert "refuses the login" in said
