"""librdkafka's own test suite against embedded clusters: what fails or is skipped is what the page says."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from harness.certificates import PASSWORD, Certificates, certificates
from harness.jars import KAFKA_VERSION
from harness.librdkafka import as_trivup, librdkafka_suite
from harness.slow_link import slow_link
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.librdkafka import LibrdkafkaSuite, Outcome

pytestmark = [pytest.mark.apache, pytest.mark.full, pytest.mark.timeout(7_200)]

PAGE = Path(__file__).parents[2] / "docs" / "unsupported.md"
ROW = re.compile(r"^\| `(\d{4}_\w+)` \|", re.MULTILINE)
USERS = {"alice": "secret"}
LOGIN = {"security.protocol": "SASL_SSL", "sasl.username": "alice", "sasl.password": "secret"}
LIKE_TRIVUP = {
    "num.partitions": "4",
    "default.replication.factor": "3",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""The brokers that the suite expects."""


class Stage(NamedTuple):
    """The suite, and a folder for its files."""

    suite: LibrdkafkaSuite
    folder: Path
    made: Certificates


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    with needs_kafka():
        return Stage(librdkafka_suite(), tmp_path, certificates(tmp_path / "certificates"))


def excepted() -> set[str]:
    """Return the tests that the page names."""
    _, heading, section = PAGE.read_text().partition("\n## librdkafka's test suite\n")
    assert heading
    return set(ROW.findall(section.partition("\n## ")[0]))


def run(
    stage: Stage,
    settings: Mapping[str, str],
    *,
    listener: str = "PLAINTEXT",
    properties: Mapping[str, str] | None = None,
    numbers: Sequence[str] = (),
    quick: bool = True,
    environment: Mapping[str, str] | None = None,
    is_far: bool = False,
) -> dict[str, Outcome]:
    """Run the suite against three brokers in three racks. With `is_far`, the only one that clients know at
    first has a link with latency.
    """
    secured = listener != "PLAINTEXT"
    stores = {
        "ssl.keystore.location": str(stage.made.server),
        "ssl.truststore.location": str(stage.made.authority),
    }
    options = {"listeners": ("SASL_SSL", "PLAINTEXT"), "users": USERS} if secured else {}
    given = {**LIKE_TRIVUP, **(stores if secured else {}), **(properties or {})}
    racks = tuple(f"RACK{number}" for number in range(3))
    with ExitStack() as stack:
        running = stack.enter_context(embedded(3, racks=racks, properties=given, **options))
        bootstrap = running.cluster.bootstrap_at(listener)
        if is_far:
            bootstrap = stack.enter_context(slow_link(bootstrap.partition(",")[0]))
        where = {"bootstrap.servers": bootstrap, **settings}
        if secured:
            where["ssl.ca.location"] = str(stage.made.authority)
        return stage.suite.run(
            stage.folder,
            where,
            kafka=KAFKA_VERSION,
            tools_at=running.cluster.bootstrap_at("PLAINTEXT"),
            numbers=numbers,
            quick=quick,
            environment=environment,
        )


def failures(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """Return what did not pass, with the reason and where its output is, but for what the page names."""
    exceptions = excepted()
    return {
        name: f"{outcome.state}: {outcome.why} ({outcome.log})"
        for name, outcome in outcomes.items()
        if outcome.state in ("FAILED", "CRASHED") and name not in exceptions
    }


def passed(outcomes: Mapping[str, Outcome]) -> set[str]:
    return {name for name, outcome in outcomes.items() if outcome.state == "PASSED"}


def test_suite_passes(stage: Stage) -> None:
    """The whole suite in its default scenario, with ACLs, transactions, racks and Kafka's own tools."""
    outcomes = run(stage, {})
    assert not failures(outcomes)
    done = passed(outcomes)
    assert len(done) > 80
    assert not done & excepted(), "the page names a test that passes"
    assert {
        "0098_consumer_txn",
        "0101_fetch_from_follower",
        "0103_transactions",
        "0119_consumer_auth",
    } <= done


def test_suite_passes_without_topics_created_on_first_use(stage: Stage) -> None:
    numbers = ("0045", "0107", "0111")
    outcomes = run(
        stage,
        {},
        properties={"auto.create.topics.enable": "false"},
        numbers=numbers,
        environment={"TEST_SCENARIO": "noautocreate"},
    )
    assert not failures(outcomes)
    assert {each[:4] for each in passed(outcomes)} == set(numbers)


def test_suite_passes_after_a_login(stage: Stage) -> None:
    outcomes = run(stage, {**LOGIN, "sasl.mechanism": "SCRAM-SHA-512"}, listener="SASL_SSL")
    assert not failures(outcomes)
    assert len(passed(outcomes)) > 70
    assert "0135_sasl_credentials" in passed(outcomes)


def test_clients_verify_certificates(stage: Stage) -> None:
    """The client reports another error than the test expects if an answer to its handshake comes at once."""
    own = {
        "ssl.key.location": str(stage.made.client_encrypted),
        "ssl.key.password": PASSWORD,
        "ssl.certificate.location": str(stage.made.client),
    }
    outcomes = run(
        stage,
        {**LOGIN, "sasl.mechanism": "SCRAM-SHA-512", **own},
        listener="SASL_SSL",
        numbers=("0097",),
        environment=as_trivup(stage.made),
        is_far=True,
    )
    assert "0097_ssl_verify" in passed(outcomes), failures(outcomes)


@pytest.mark.parametrize(
    "what", ["do_test_consumer", "do_test_producer", "do_test_txn_producer", "do_test_reauth"]
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_clients_log_in_again(stage: Stage, mechanism: str, what: str) -> None:
    again(stage, {**LOGIN, "sasl.mechanism": mechanism}, what, every_ms=6_000)


def test_clients_log_in_again_with_tokens(stage: Stage) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "scope=requiredScope principal=admin",
    }
    # Tokens last half as long, and are renewed after four fifths of that: a second before the next login.
    again(stage, settings, "do_test_oauthbearer", every_ms=20_000)


def again(stage: Stage, settings: Mapping[str, str], what: str, *, every_ms: int) -> None:
    """Run these parts of the suite's test of clients that have to log in again and again."""
    outcomes = run(
        stage,
        settings,
        listener="SASL_SSL",
        properties={
            "connections.max.reauth.ms": str(every_ms),
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        },
        numbers=("0142",),
        quick=False,
        environment={"SUBTESTS": what},
    )
    assert passed(outcomes) == {"0142_reauthentication"}, failures(outcomes)
    assert f"[ {what}" in outcomes["0142_reauthentication"].log.read_text(), "the suite has such a part"
