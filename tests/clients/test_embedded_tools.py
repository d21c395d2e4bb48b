"""Apache Kafka's own command line tools, of the last version 3 and the latest, with an embedded cluster."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.tools import Tools
from tests.clients.embedded import Running, embedded, wait_until
from tests.conftest import needs_kafka
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

_PROPERTIES = ("--reader-property", "--formatter-property")
_PATIENCE_MS = "60000"
"""For tools whose own timeout is shorter than a busy machine may stall."""


class Shell:
    """Tools of one version, with the cluster's address."""

    def __init__(self, tools: Tools, bootstrap: str) -> None:
        self.tools = tools
        self._where = ("--bootstrap-server", bootstrap)

    def run(self, name: str, *arguments: str, given: str = "") -> str:
        return self.tools.run(name, *self._where, *arguments, given=given)

    def refused(self, name: str, *arguments: str) -> str:
        return self.tools.refused(name, *self._where, *arguments)

    def topics(self, *arguments: str) -> str:
        return self.run("kafka-topics", *arguments)

    def groups(self, *arguments: str) -> str:
        return self.run("kafka-consumer-groups", "--timeout", _PATIENCE_MS, *arguments)

    def configs(self, *arguments: str) -> str:
        return self.run("kafka-configs", *arguments)

    def produce(self, topic: str, given: str, *arguments: str) -> None:
        patience = ("--request-timeout-ms", _PATIENCE_MS)
        self.run("kafka-console-producer", "--topic", topic, *patience, *arguments, given=given)

    def ends(self, topic: str) -> list[int]:
        """Return the end offset of every partition."""
        return [
            int(line.rpartition(":")[2]) for line in self.run("kafka-get-offsets", "--topic", topic).split()
        ]


@pytest.fixture(scope="module", params=often([KAFKA_VERSION, KAFKA_4], KAFKA_4))
def tools(request: pytest.FixtureRequest) -> Tools:
    tools = Tools(request.param)
    with needs_kafka():
        tools.command("kafka-topics")
    return tools


@pytest.fixture(scope="module")
def cluster(tools: Tools) -> Iterator[Running]:
    with embedded(3, racks=("a", "b", "c")) as running:
        yield running


@pytest.fixture
def shell(tools: Tools, cluster: Running) -> Shell:
    return Shell(tools, cluster.bootstrap)


def test_topics_tool_creates_describes_and_deletes(shell: Shell) -> None:
    shell.topics("--create", "--topic", "made", "--partitions", "3", "--replication-factor", "2")
    shell.topics("--alter", "--topic", "made", "--partitions", "5")
    described = shell.topics("--describe", "--topic", "made")
    assert "PartitionCount: 5" in described
    assert "ReplicationFactor: 2" in described
    assert len(re.findall(r"Partition: \d", described)) == 5
    assert "made" in shell.topics("--list").split()
    said = shell.refused("kafka-topics", "--create", "--topic", "made")
    assert "'made' already exists" in said
    shell.topics("--delete", "--topic", "made")
    assert "made" not in shell.topics("--list").split()


def test_console_producer_consumer_and_groups_work_together(shell: Shell) -> None:
    lines = [f"line {number}" for number in range(100)]
    shell.topics("--create", "--topic", "lines", "--partitions", "1", "--replication-factor", "3")
    shell.produce("lines", "\n".join(lines) + "\n")
    read = ("kafka-console-consumer", "--topic", "lines", "--group", "readers")
    assert shell.run(*read, "--from-beginning", "--max-messages", "100").splitlines() == lines
    described = shell.groups("--describe", "--group", "readers")
    (row,) = [line.split() for line in described.splitlines() if line.startswith("readers")]
    at = 2 if "LEADER-EPOCH" in described else 1
    assert row[1:3] == ["lines", "0"]
    assert row[2 + at : 5 + at] == ["100", "100", "0"]
    assert "readers" in shell.groups("--list").split()
    assert "Empty" in shell.groups("--describe", "--group", "readers", "--state")
    to_90 = ("--topic", "lines", "--to-offset", "90", "--execute")
    shell.groups("--reset-offsets", "--group", "readers", *to_90)
    assert shell.run(*read, "--max-messages", "10").splitlines() == lines[90:]
    assert shell.ends("lines") == [100]
    shell.groups("--delete", "--group", "readers")
    assert "readers" not in shell.groups("--list").split()


def test_keys_and_headers_are_read_back(shell: Shell) -> None:
    shell.topics("--create", "--topic", "keyed", "--partitions", "1", "--replication-factor", "1")
    given = "".join(f"h:{number}\tkey {number}\tvalue {number}\n" for number in range(20))
    reader, formatter = ("--property",) * 2 if shell.tools.major < 4 else _PROPERTIES
    parse = (reader, "parse.key=true", reader, "parse.headers=true")
    shell.produce("keyed", given, *parse)
    show = [f"print.{what}=true" for what in ("key", "headers", "partition", "offset")]
    properties = [word for each in show for word in (formatter, each)]
    printed = shell.run(
        *("kafka-console-consumer", "--topic", "keyed", "--partition", "0", "--offset", "5"),
        *("--max-messages", "15", *properties),
    )
    assert printed.splitlines() == [
        f"Partition:0\tOffset:{n}\th:{n}\tkey {n}\tvalue {n}" for n in range(5, 20)
    ]


def test_configs_tool_sets_and_shows_configs(shell: Shell) -> None:
    shell.topics("--create", "--topic", "set", "--config", "retention.ms=1000")
    shell.configs("--alter", "--topic", "set", "--add-config", "max.message.bytes=2000")
    shown = shell.configs("--describe", "--topic", "set")
    assert "retention.ms=1000" in shown
    assert "max.message.bytes=2000" in shown
    shell.configs("--alter", "--topic", "set", "--delete-config", "retention.ms")
    assert "retention.ms" not in shell.configs("--describe", "--topic", "set")
    rate = "follower.replication.throttled.rate"
    shell.configs("--alter", "--broker", "2", "--add-config", f"{rate}=5000")
    assert f"{rate}=5000" in shell.configs("--describe", "--broker", "2")


@pytest.mark.parametrize(
    "compression",
    often(["none", "gzip", "snappy", "lz4", "zstd"], "zstd"),
)
def test_performance_tools_write_and_read(shell: Shell, cluster: Running, compression: str) -> None:
    topic = f"fast-{compression}"
    shell.topics("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "3")
    printed = shell.tools.run(
        *("kafka-producer-perf-test", "--topic", topic, "--num-records", "20000", "--record-size", "500"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={cluster.bootstrap}", "acks=all"),
        f"compression.type={compression}",
    )
    assert "20000 records sent" in printed
    assert sum(shell.ends(topic)) == 20000
    count = "--messages" if shell.tools.major < 4 else "--num-records"
    patience = ("--timeout", _PATIENCE_MS)
    read = shell.run("kafka-consumer-perf-test", "--topic", topic, count, "20000", *patience)
    names, numbers = (line.split(", ") for line in read.strip().splitlines()[-2:])
    assert dict(zip(names, numbers, strict=True))["data.consumed.in.nMsg"] == "20000"


def test_election_and_log_dirs_tools_work(shell: Shell, cluster: Running) -> None:
    shell.topics("--create", "--topic", "led", "--replica-assignment", "1:0:2")
    cluster.stop(1)
    cluster.start(1)
    wait_until(lambda: cluster.in_sync("led") == {0, 1, 2}, "all in sync")
    assert cluster.leader_of("led") != 1
    shell.run("kafka-leader-election", "--election-type", "preferred", "--topic", "led", "--partition", "0")
    wait_until(lambda: cluster.leader_of("led") == 1, "the first replica leads")
    assert '"partition":"led-0"' in shell.run("kafka-log-dirs", "--describe", "--topic-list", "led")


def test_log_dirs_tool_works_with_cordoned_log_dirs(shell: Shell, cluster: Running) -> None:
    """The tool of 4.3.1 requests version 5, which reports cordons, but does not print them."""
    (path,) = cluster.cluster.brokers[2].options.log_dirs
    logs = cluster.cluster.brokers[2].services.logs
    shell.configs("--alter", "--broker", "2", "--add-config", f"cordoned.log.dirs={path}")
    wait_until(lambda: path in logs.cordoned(), "the broker has heard of it")
    printed = shell.run("kafka-log-dirs", "--describe", "--broker-list", "1,2")
    (line,) = (line for line in printed.splitlines() if line.startswith("{"))
    told = {each["broker"]: each["logDirs"][0] for each in json.loads(line)["brokers"]}
    assert (told[2]["logDir"], told[2]["error"]) == (path, None)
    shell.configs("--alter", "--broker", "2", "--delete-config", "cordoned.log.dirs")
    wait_until(lambda: not logs.cordoned(), "the broker has heard of it")


def test_versions_are_listed_and_records_deleted(shell: Shell, tmp_path: Path) -> None:
    patient = tmp_path / "patient.properties"
    patient.write_text(f"request.timeout.ms={_PATIENCE_MS}\n")
    versions = shell.run("kafka-broker-api-versions", "--command-config", str(patient))
    assert "Produce(0): 0 to 11" in versions
    shell.topics("--create", "--topic", "cut", "--partitions", "1", "--replication-factor", "3")
    shell.produce("cut", "".join(f"{n}\n" for n in range(10)))
    request = tmp_path / "records.json"
    request.write_text(json.dumps({"partitions": [{"topic": "cut", "partition": 0, "offset": 4}]}))
    assert "low_watermark: 4" in shell.run("kafka-delete-records", "--offset-json-file", str(request))
    read = shell.run("kafka-console-consumer", "--topic", "cut", "--from-beginning", "--max-messages", "6")
    assert read.split() == [str(n) for n in range(4, 10)]
