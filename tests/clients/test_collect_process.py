"""`restow collect` as a process without Spark: killed, restarted, stopped beside a silent broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.cluster.net.server import ClientConnection
from restow.pipeline.schemas import SAMPLED
from tests.clients.embedded import Running, embedded, wait_until
from tests.unit.pipeline.collected import left_over, rows_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 300
NAMES = [each.name for each in SAMPLED]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(2, racks=("a", "b")) as running:
        new = NewTopic(name="orders", partitions=4, replication_factor=2)
        ask_cluster(ConnectionSettings(bootstrap=running.bootstrap), lambda admin: admin.create_topics([new]))
        running.wait_until_known("orders", 4)
        yield running


class Collecting:
    """The command, and the documents that it has printed so far."""

    def __init__(self, cluster: Running, lake: Path, *arguments: str) -> None:
        self.documents: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "restow", "collect", "--json", "--lake", str(lake)]
        self.process = subprocess.Popen(
            [*command, "-b", cluster.bootstrap, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.documents.append(json.loads(line))

    @property
    def samples(self) -> list[dict[str, Any]]:
        return [each for each in self.documents if "sample" in each]

    def wait_for_samples(self, number: int) -> None:
        wait_until(
            lambda: len(self.samples) >= number or self.process.poll() is not None, f"{number} samples"
        )
        assert self.process.poll() is None, self.end()

    def end(self) -> tuple[int, str]:
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        assert self.process.stderr is not None
        with self.process.stderr as complaints, self.process.stdout:  # type: ignore[union-attr]
            return code, complaints.read()


PATIENT = ("--command-property", "request.timeout.ms=60000")


def test_collect_continues_after_a_kill_and_loses_nothing(cluster: Running, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    first = Collecting(cluster, lake, "--every", "200ms", *PATIENT)
    first.wait_for_samples(3)
    first.process.kill()
    first.end()
    second = Collecting(cluster, lake, "--every", "200ms", *PATIENT)
    second.wait_for_samples(2)
    second.process.send_signal(signal.SIGTERM)
    assert second.end() == (0, "")
    numbers = [each["sample"] for each in first.samples + second.samples]
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert len(numbers) - len(set(numbers)) <= 1, "only the one in work when it was killed may be told again"
    assert second.documents[-1]["samples"] == len(second.samples)
    told = {each["sample"]: each["rows"] for each in first.samples + second.samples}
    for name in NAMES:
        found = rows_in(lake, name)
        assert len(found) == sum(rows[name] for rows in told.values()), name
        assert len({json.dumps(row, default=str) for row in found}) == len(found), name
    assert left_over(lake) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_collect_ends_in_order_while_a_broker_hangs(
    cluster: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The sample in progress is abandoned: nothing of it is left, and the checkpoint is free."""
    lake = tmp_path / "lake"
    hear = ClientConnection.frame
    deaf: set[int] = set()
    asked = threading.Event()

    def frame(self: ClientConnection, payload: bytes) -> None:
        if self._services.broker_id in deaf and b"restow" in payload[:32]:
            asked.set()
        else:
            hear(self, payload)

    monkeypatch.setattr(ClientConnection, "frame", frame)
    collecting = Collecting(cluster, lake, "--every", "200ms")
    collecting.wait_for_samples(1)
    deaf.update((0, 1))
    assert asked.wait(PATIENCE_S)
    collecting.process.send_signal(number)
    assert collecting.end() == (0, "")
    assert left_over(lake) == []
    deaf.clear()
    again = Collecting(cluster, lake, "--once", *PATIENT)
    assert again.end() == (0, "")
    assert [each["sample"] for each in again.samples] == [len(collecting.samples)]


def test_collect_refuses_a_checkpoint_that_is_in_use(cluster: Running, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    first = Collecting(cluster, lake, "--every", "1h", *PATIENT)
    first.wait_for_samples(1)
    code, said = Collecting(cluster, lake, "--once", *PATIENT).end()
    assert code == 1
    assert "another process goes on from" in said
    first.process.send_signal(signal.SIGINT)
    assert first.end() == (0, "")
