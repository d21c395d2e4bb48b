"""The stage of the operator's story: commands with `--json`, and the truth that they are compared with.

The truth is what lies in the brokers' folders, what their controller lists, and their configs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.brokers import wait_for
from restow.cli import run
from restow.client import BrokerError, ConnectionSettings, TopicPartitionReplica
from restow.client.kafka_admin import ask_cluster
from restow.model import TopicPartition
from tests.apache.traffic import ANY_FILL, WAIT_S
from tests.clients.watched_run import throttles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import pytest

    from restow.client import KafkaAdmin

    Replicas = Mapping[TopicPartition, tuple[int, ...]]
    Bytes = dict[tuple[int, str], int]

PATIENCE_S = 3 * WAIT_S
FAST, SLOW = "30MB/s", "200kB/s"
INTERNAL = "__"


class Stage:
    """A cluster, an operator on it, and what is true."""

    def __init__(
        self,
        bootstrap: str,
        disks: Callable[[], Bytes],
        folder: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.bootstrap, self.disks, self.folder = bootstrap, disks, folder
        self.plan = str(folder / "plan.json")
        self._capsys = capsys
        self._where = ("-b", bootstrap, "--json")
        self.journal = ("--journal", str(folder / "state"))
        self.told: list[str] = []
        """One line for each act: what the screen said, and what was so."""

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def asks(self, *words: str) -> tuple[int, Any]:
        """Return the exit code, and the last document or the error."""
        code = run([*words, *self._where])
        said = self._capsys.readouterr()
        return code, json.loads(said.out.splitlines()[-1]) if said.out else said.err

    def types(self, *words: str, code: int = 0) -> Any:
        """Return the document; check the exit code."""
        found, document = self.asks(*words)
        assert found == code, (words, document)
        return document

    def runs(self, *words: str, code: int = 0) -> Any:
        """Do the same for a command about runs."""
        return self.types(*words, *self.journal, code=code)

    def plans(self, *words: str, code: int = 0) -> Any:
        return self.types("plan", *words, *ANY_FILL, "-o", self.plan, code=code)

    def findings(self) -> set[str]:
        """Return the kinds of what `restow doctor` finds."""
        _, found = self.asks("doctor", *self.journal)
        return {each["finding"] for each in found} if isinstance(found, list) else {found}

    def ask(self, work: Callable[[KafkaAdmin], Any]) -> Any:
        return ask_cluster(ConnectionSettings(bootstrap=self.bootstrap), work)

    def replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas of all partitions that are not Kafka's own, in order."""

        async def look(admin: KafkaAdmin) -> dict[TopicPartition, tuple[int, ...]]:
            return {
                TopicPartition(topic.name, each.number): each.replicas
                for topic in await admin.describe_topics()
                if not topic.name.startswith(INTERNAL)
                for each in topic.partitions
            }

        found: dict[TopicPartition, tuple[int, ...]] = self.ask(look)
        return found

    def leaders(self) -> dict[TopicPartition, int | None]:
        async def look(admin: KafkaAdmin) -> dict[TopicPartition, int | None]:
            return {
                TopicPartition(topic.name, each.number): each.leader
                for topic in await admin.describe_topics()
                for each in topic.partitions
            }

        found: dict[TopicPartition, int | None] = self.ask(look)
        return found

    def moving(self) -> set[TopicPartition]:
        async def look(admin: KafkaAdmin) -> set[TopicPartition]:
            return set(await admin.list_partition_reassignments())

        found: set[TopicPartition] = self.ask(look)
        return found

    def crowds(self, broker: int) -> None:
        """Put all replicas of a broker into its first log dir, and wait until they are there."""

        async def crowd(admin: KafkaAdmin) -> bool:
            told = (await admin.describe_log_dirs([broker]))[broker]
            assert not isinstance(told, BrokerError)
            first = min(each.path for each in told.log_dirs)
            wanted = {
                TopicPartitionReplica(each.partition, broker): first
                for each in told.replicas
                if each.log_dir != first and not each.future
            }
            if wanted:
                await admin.alter_replica_log_dirs(wanted)
            return not wanted

        wait_for(f"everything of broker {broker} is in one log dir", lambda: self.ask(crowd), WAIT_S)

    def throttled(self) -> dict[str, str | None]:
        found: dict[str, str | None] = self.ask(throttles)
        return found

    def nothing_is_left(self) -> None:
        """Check that nothing moves, no throttle is set and every replica's folder is where it belongs."""
        assert self.moving() == set()
        wait_for("no throttle is left", lambda: not self.throttled(), WAIT_S)
        wait_for("the disks have what the controller says", self._settled, WAIT_S)

    def _settled(self) -> bool:
        wanted = {(broker, str(name)) for name, row in self.replicas().items() for broker in row}
        found = self.disks()
        gone = self.gone()
        return {each for each in found if each[0] not in gone and INTERNAL not in each[1]} == {
            each for each in wanted if each[0] not in gone
        }

    def gone(self) -> set[int]:
        """Return the brokers that have a folder and are not alive."""

        async def look(admin: KafkaAdmin) -> set[int]:
            return {each.id for each in (await admin.describe_cluster()).nodes}

        alive = self.ask(look)
        return {broker for broker, _ in self.disks()} - alive

    def carries_out(
        self, act: str, command: tuple[str, ...], *, copied: int | None = None, outcome: str = "done"
    ) -> Any:
        """Run a command to its end, and compare its summary with the disks. Return the outcome.

        `copied` is what the plan said that it copies.
        """
        before = self.disks()
        ended = self.runs(*command, "--yes")
        assert ended["outcome"] == outcome, ended
        self.nothing_is_left()
        new = {each: size for each, size in self.disks().items() if each not in before}
        summary = ended["summary"]
        self.tells(act, summary, sum(new.values()))
        slack = self.slack(name for _, name in new)
        assert abs(summary["copied_bytes"] - sum(new.values())) <= slack, (summary, new)
        assert copied is None or abs(summary["copied_bytes"] - copied) <= slack, (summary, copied)
        assert summary["partitions_left"] == 0
        return ended

    def slack(self, partitions: Iterable[object]) -> int:
        """Return by how many bytes sizes may differ: a run's mark writes to the group's topic meanwhile."""
        return 100_000 if any(INTERNAL in str(each) for each in partitions) else 0

    def tells(self, act: str, summary: Mapping[str, Any], new_bytes: int) -> None:
        self.told.append(
            f"{act}: screen {summary['copied_bytes']:,} B in {summary['seconds']} s "
            f"(predicted {summary['predicted_s']}), disks {new_bytes:,} B"
        )

    def is_verified(self) -> None:
        wait_for("it is verified", lambda: self.asks("verify", self.plan, *self.journal)[0] == 0, WAIT_S)

    @contextmanager
    def beside(self, *words: str) -> Iterator[Beside]:
        """Run a command in a process of its own, which is killed at the end of the block."""
        command = [sys.executable, "-m", "restow", *words, *self._where, *self.journal]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield Beside(process)
            finally:
                process.kill()


class Beside:
    """A run in another process, and its events."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.events: list[Any] = []

    def until(self, is_so: Callable[[Any], object]) -> Any:
        """Read events until one of them is as it should be; return it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue
            self.events.append(json.loads(line))
            if is_so(self.events[-1]):
                return self.events[-1]
        raise AssertionError(f"it ended before: {self.events[-5:]}")

    def copies(self) -> Any:
        """Wait until moves are under way."""
        return self.until(lambda event: event.get("event") == "progress" and event["under_way"])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.returncode < 0

    def ends(self) -> Any:
        """Wait for the outcome."""
        ended = self.until(lambda event: "outcome" in event)
        self._process.wait(PATIENCE_S)
        return ended
