"""The command line against a cluster that the command line started, as a user would."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from harness.process import free_ports
from restow.cli import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RESTOW = [sys.executable, "-m", "restow"]
WAIT_S = 120


def restow(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "RESTOW_BOOTSTRAP_SERVER"}
    return subprocess.run(
        [*RESTOW, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        stdin=subprocess.DEVNULL,
        env=environment,
    )


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, where a process of its own would show nothing more."""
    out, complaints = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(complaints):
        code = run(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), complaints.getvalue())


def told(*arguments: str, by: Callable[..., subprocess.CompletedProcess[str]] = called) -> Any:
    done = by(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def up(*arguments: str, end: signal.Signals = signal.SIGINT) -> Iterator[Any]:
    """Start a cluster, yield its first document, and check that it ends cleanly."""
    process = subprocess.Popen(
        [*RESTOW, "cluster", "up", "--port", "0", "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=WAIT_S)[1]
        yield json.loads(line)
        process.send_signal(end)
        out, err = process.communicate(timeout=WAIT_S)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with up("--brokers", "3", "--racks", "a,b", "--log-dirs", "2") as ready:
        yield ready


@pytest.fixture
def bootstrap(cluster: Any) -> str:
    return str(cluster["bootstrap_servers"])


def test_up_prints_what_it_started(cluster: Any) -> None:
    assert [broker["id"] for broker in cluster["brokers"]] == [0, 1, 2]
    assert [broker["rack"] for broker in cluster["brokers"]] == ["a", "b", "a"]
    assert all(len(broker["log_dirs"]) == 2 for broker in cluster["brokers"])
    addresses = [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]]
    assert cluster["bootstrap_servers"] == ",".join(addresses)


def test_up_with_tls_serves_clients_that_trust_it(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    with (
        up("--brokers", "1", "--tls", str(folder)) as ready,
        closing(
            KafkaProducer(
                bootstrap_servers=ready["listeners"]["SSL"],
                security_protocol="SSL",
                ssl_cafile=str(folder / "authority.pem"),
            )
        ) as producer,
    ):
        assert producer.send("t", b"x").get(timeout=WAIT_S).offset == 0


def test_up_with_logins_serves_only_its_users(tmp_path: Path) -> None:
    users, properties = tmp_path / "users.txt", tmp_path / "client.properties"
    users.write_text("alice:secret\n")
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.username=alice\nsasl.password=secret\n"
    )
    listeners = ("--listener", "LOGIN:SASL_PLAINTEXT", "--listener", "OPEN:PLAINTEXT")
    with up("--brokers", "1", *listeners, "--users", str(users)) as ready:
        bootstrap = ready["listeners"]["LOGIN"]
        assert bootstrap == ready["bootstrap_servers"]
        told("topics", "create", "t", "--partitions", "1", "-b", ready["listeners"]["OPEN"], by=restow)
        found = told("topics", "list", "-b", bootstrap, "--command-config", str(properties), by=restow)
        assert "t" in json.dumps(found)
        properties.write_text(properties.read_text().replace("=secret", "=wrong"))
        refused = restow("topics", "list", "-b", bootstrap, "--command-config", str(properties))
        assert refused.returncode != 0
        assert "alice" in refused.stderr or "Authentication" in refused.stderr
        assert "wrong" not in refused.stderr


def test_topic_is_created_described_and_deleted(bootstrap: str) -> None:
    new = ("topics", "create", "life", "--partitions", "3", "--replication-factor", "2")
    assert told(*new, "-b", bootstrap, by=restow)
    found = told("topics", "describe", "life", "-b", bootstrap, by=restow)
    assert [len(each["isr"]) for each in found["partitions"]] == [2, 2, 2]
    assert (
        told("topics", "create-partitions", "life", "--partitions", "5", "-b", bootstrap)["partitions"] == 5
    )
    listed = {each["name"]: each for each in told("topics", "list", "-b", bootstrap)["topics"]}
    assert (listed["life"]["partitions"], listed["life"]["replication_factor"]) == (5, 2)
    refused = restow("topics", "delete", "life", "-b", bootstrap)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "this would delete life (5 partitions): say --yes" in refused.stderr
    assert told("topics", "delete", "life", "--yes", "-b", bootstrap) == {"deleted": ["life"]}
    assert "life" not in {each["name"] for each in told("topics", "list", "-b", bootstrap)["topics"]}


def test_topic_is_created_with_replicas_by_hand_and_configs(bootstrap: str) -> None:
    assert told(
        *("topics", "create", "hand", "--replica-assignment", "0:1,2:0"),
        *("--config", "retention.ms=1000", "-b", bootstrap),
    )
    found = told("topics", "describe", "hand", "-b", bootstrap)
    assert [each["replicas"] for each in found["partitions"]] == [[0, 1], [2, 0]]
    assert found["configs"] == {"retention.ms": "1000"}
    again = told("topics", "create", "hand", "--if-not-exists", "-b", bootstrap)
    assert again == {"topic": "hand", "created": False}
    drawn = called("topics", "describe", "hand", "-b", bootstrap)
    assert drawn.returncode == 0
    assert "hand: 2 partitions × 2 replicas on 3 brokers in 2 racks" in drawn.stdout
    assert "retention.ms=1000" in drawn.stdout


def test_status_counts_brokers_and_partitions(bootstrap: str) -> None:
    assert told("topics", "create", "counted", "--replica-assignment", "0:1,1:2", "-b", bootstrap)
    status = told("cluster", "status", "-b", bootstrap)
    assert [broker["up"] for broker in status["brokers"]] == [True] * 3
    assert sum(broker["controller"] for broker in status["brokers"]) == 1
    assert status["offline"] == status["under_replicated"] == 0
    assert sum(broker["leaders"] for broker in status["brokers"]) == status["partitions"]
    assert "all in sync" in called("cluster", "status", "-b", bootstrap).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("topics", "describe", "nix"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "create", "a b"), 1, "INVALID_TOPIC_EXCEPTION"),
        (("topics", "create", "x", "--replication-factor", "9"), 1, "INVALID_REPLICATION_FACTOR"),
        (("topics", "create", "x", "--config", "nix=1"), 1, "INVALID_CONFIG"),
        (("topics", "create", "x", "--config", "nix"), 2, "is not NAME=VALUE"),
        (("topics", "create", "x", "--partitions", "0"), 2, "--partitions"),
        (("topics", "create", "x", "--partitions", "1", "--replica-assignment", "0"), 2, "says all"),
        (("topics", "create-partitions", "nix", "--partitions", "3"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "delete", "nix", "--yes"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_invalid_request_is_refused_in_one_line(
    bootstrap: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = called(*arguments, "-b", bootstrap)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_unreachable_cluster_is_reported() -> None:
    """The port is bound: otherwise another process may listen there, or the client may connect to itself."""
    with free_ports(1) as (port,):
        done = restow("topics", "list", "-b", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "does not answer" in done.stderr


def test_folder_is_continued(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with up("--brokers", "2", "--data", data) as ready:
        assert told("topics", "create", "kept", "--partitions", "1", "-b", ready["bootstrap_servers"])
        producer = KafkaProducer(bootstrap_servers=ready["bootstrap_servers"], acks="all")
        for number in range(50):
            producer.send("kept", str(number).encode())
        producer.close()
        second = restow("cluster", "up", "--port", "0", "--data", data)
        assert second.returncode == 1
        assert "another process has a cluster up" in second.stderr
    with up("--data", data, end=signal.SIGTERM) as ready:
        assert len(ready["brokers"]) == 2
        consumer = KafkaConsumer(bootstrap_servers=ready["bootstrap_servers"], auto_offset_reset="earliest")
        consumer.assign([TopicPartition("kept", 0)])
        values = []
        while len(values) < 50:
            for batch in consumer.poll(timeout_ms=5000).values():
                values += [int(record.value) for record in batch]
        consumer.close()
        assert values == list(range(50))
    fewer = restow("cluster", "up", "--port", "0", "--data", data, "--brokers", "1")
    assert fewer.returncode == 2
    assert "was made with 2" in fewer.stderr


def test_taken_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = restow("cluster", "up", "--brokers", "1", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "a port of these brokers is taken" in done.stderr
    assert "Traceback" not in done.stderr
