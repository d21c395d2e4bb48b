"""Apache Kafka's command line tools, run like its scripts: one JVM per call.

    tools = Tools(KAFKA_4)
    tools.run("kafka-topics", "--bootstrap-server", bootstrap, "--list")

A JVM without an optimising compiler needs about a second per call.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.apache import class_archive
from harness.jars import KAFKA_VERSION, kafka_jars
from harness.java import java
from harness.jvm import SMALL, logging_options

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMEOUT_S = 180
_HEAP = "256m"

_MAIN_CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}
_BEFORE_4 = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
}


class ToolFailed(AssertionError):
    """A tool ended with an error. The message has its output."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one version."""

    version: str = KAFKA_VERSION

    @property
    def major(self) -> int:
        """The major version: 3, 4, …"""
        return int(self.version.partition(".")[0])

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the command for that script's tool. The jars are fetched if missing."""
        main = _MAIN_CLASSES[name] if self.major >= 4 else _BEFORE_4.get(name, _MAIN_CLASSES[name])
        archive = class_archive(self.version)
        options: Sequence[str] = (*SMALL, *archive, f"-Xmx{_HEAP}", *logging_options("OFF"))
        return [java(), *options, "-cp", f"{kafka_jars(self.version)}/*", main, *arguments]

    def run(self, name: str, *arguments: str, given: str = "") -> str:
        """Return the tool's output for this input. Raises ToolFailed."""
        done = self._done(name, arguments, given)
        if done.returncode != 0:
            raise ToolFailed(f"{name} {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def refused(self, name: str, *arguments: str) -> str:
        """Return the output of a tool that must fail. Raises ToolFailed if it succeeds."""
        done = self._done(name, arguments, "")
        if done.returncode == 0:
            raise ToolFailed(f"{name} {' '.join(arguments)} should have failed, but printed {done.stdout}")
        return done.stdout + done.stderr

    def _done(self, name: str, arguments: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(name, *arguments),
            input=given,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
