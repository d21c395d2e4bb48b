"""Apache Kafka's own command line tools against an embedded cluster."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.java import java
from harness.jvm import logging_options
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PRODUCER = "kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
VERSIONS = "kafka.admin.BrokerApiVersionsCommand"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3, racks=("a", "b", "c")) as running:
        yield running


@pytest.fixture(scope="module")
def tool(cluster: Running, jars: Path) -> Callable[..., str]:
    """Runs a tool, which must succeed, and gives what it printed."""

    def run(name: str, *arguments: str, given: str = "") -> str:
        with needs_kafka():
            command = [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        command += [*logging_options("OFF"), "-cp", f"{jars}/*", name]
        where = [] if name == PERFORMANCE else ["--bootstrap-server", cluster.bootstrap]
        done = subprocess.run(
            [*command, *where, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=2 * WAIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_topics(tool: Callable[..., str]) -> None:
    tool(TOPICS, "--create", "--topic", "made", "--partitions", "3", "--replication-factor", "2")
    tool(TOPICS, "--alter", "--topic", "made", "--partitions", "5")
    described = tool(TOPICS, "--describe", "--topic", "made")
    assert "PartitionCount: 5" in described
    assert "ReplicationFactor: 2" in described
    assert len(re.findall(r"Partition: \d", described)) == 5
    assert "made" in tool(TOPICS, "--list").split()
    tool(TOPICS, "--delete", "--topic", "made")
    assert "made" not in tool(TOPICS, "--list").split()


def test_console_producer_consumer_and_groups(tool: Callable[..., str]) -> None:
    lines = [f"line {number}" for number in range(100)]
    tool(TOPICS, "--create", "--topic", "lines", "--partitions", "1", "--replication-factor", "3")
    tool(PRODUCER, "--topic", "lines", "--producer-property", "acks=all", given="\n".join(lines) + "\n")
    consumed = tool(
        CONSUMER, "--topic", "lines", "--group", "readers", "--from-beginning", "--max-messages", "100"
    )
    assert consumed.splitlines() == lines
    described = tool(GROUPS, "--describe", "--group", "readers")
    (row,) = [line.split() for line in described.splitlines() if line.startswith("readers")]
    assert row[1:6] == ["lines", "0", "100", "100", "0"]
    assert "readers" in tool(GROUPS, "--list").split()
    assert "Empty" in tool(GROUPS, "--describe", "--group", "readers", "--state")
    tool(
        GROUPS, "--reset-offsets", "--group", "readers", "--topic", "lines", "--to-offset", "90", "--execute"
    )
    again = tool(CONSUMER, "--topic", "lines", "--group", "readers", "--max-messages", "10")
    assert again.splitlines() == lines[90:]
    assert tool(OFFSETS, "--topic", "lines").split() == ["lines:0:100"]
    tool(GROUPS, "--delete", "--group", "readers")
    assert "readers" not in tool(GROUPS, "--list").split()


def test_configs(tool: Callable[..., str]) -> None:
    tool(TOPICS, "--create", "--topic", "set", "--config", "retention.ms=1000")
    tool(CONFIGS, "--alter", "--topic", "set", "--add-config", "max.message.bytes=2000")
    shown = tool(CONFIGS, "--describe", "--topic", "set")
    assert "retention.ms=1000" in shown
    assert "max.message.bytes=2000" in shown
    tool(CONFIGS, "--alter", "--topic", "set", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool(CONFIGS, "--describe", "--topic", "set")
    rate = "follower.replication.throttled.rate"
    tool(CONFIGS, "--alter", "--broker", "2", "--add-config", f"{rate}=5000")
    assert f"{rate}=5000" in tool(CONFIGS, "--describe", "--broker", "2")


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_producer_performance(tool: Callable[..., str], cluster: Running, compression: str) -> None:
    topic = f"fast-{compression}"
    tool(TOPICS, "--create", "--topic", topic, "--partitions", "3", "--replication-factor", "3")
    printed = tool(
        PERFORMANCE,
        *("--topic", topic, "--num-records", "20000", "--record-size", "500", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={cluster.bootstrap}", "acks=all"),
        f"compression.type={compression}",
    )
    assert "20000 records sent" in printed
    ends = [int(line.rpartition(":")[2]) for line in tool(OFFSETS, "--topic", topic).split()]
    assert sum(ends) == 20000


def test_elections_log_dirs_and_versions(tool: Callable[..., str], cluster: Running) -> None:
    tool(TOPICS, "--create", "--topic", "led", "--replica-assignment", "1:0:2")
    cluster.stop(1)
    cluster.start(1)
    wait_until(lambda: cluster.in_sync("led") == {0, 1, 2}, "all in sync")
    assert cluster.leader_of("led") != 1
    tool(ELECTION, "--election-type", "preferred", "--topic", "led", "--partition", "0")
    wait_until(lambda: cluster.leader_of("led") == 1, "the first replica leads")
    assert '"partition":"led-0"' in tool(LOG_DIRS, "--describe", "--topic-list", "led")
    assert "Produce(0): 0 to 11" in tool(VERSIONS)
