"""Kill `restow cluster up --data` with kill -9 while producers write: nothing acknowledged is lost.

All brokers and their store are one process, so everything dies at the same moment. Records acknowledged with
acks=all are in files by then, and the next start finds them. This needs no Java.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.brokers import wait_for
from harness.process import last_words, running
from tests.faults.after import read_everything
from tests.faults.history import Kind, Op, check, value_of
from tests.faults.recording import GROUP, PARTITIONS, TOPIC, Recorder, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITERS = 2
ACKNOWLEDGED_PER_LIFE = 300
PATIENCE_S = 180.0


@contextmanager
def cluster(folder: Path, life: int) -> Iterator[str]:
    """Run one process with three brokers and kill it with kill -9 at the end of the block."""
    log = folder / f"cluster-{life}.log"
    command = [sys.executable, "-m", "restow", "cluster", "up", "--json", "--brokers", "3"]
    command += ["--data", str(folder / "data"), "--port", "0"]
    for config in ("offsets.topic.num.partitions=2", "auto.create.topics.enable=false"):
        command += ["--config", config]
    with running(command, log) as process:
        ready: list[Any] = []

        def is_ready() -> bool:
            assert process.poll() is None, f"the cluster ended as it started:\n{last_words(log)}"
            lines = [line for line in log.read_text().splitlines(keepends=True) if line.startswith("{")]
            ready.extend(json.loads(line) for line in lines if line.endswith("\n"))
            return bool(ready)

        wait_for(f"life {life} of the cluster begins", is_ready, PATIENCE_S)
        yield ready[0]["bootstrap_servers"]


class Writer(threading.Thread):
    """An idempotent producer that writes rising numbers to all partitions until stopped."""

    def __init__(self, recorder: Recorder, name: str, bootstrap: str) -> None:
        super().__init__(name=name, daemon=True)
        self._recorder = recorder
        self.acknowledged = 0
        self.over = threading.Event()
        settings = {"enable.idempotence": True, "acks": "all", "linger.ms": 2}
        self._producer = Producer(quiet(bootstrap, **settings))

    def run(self) -> None:
        for number in count():
            if self.over.is_set():
                break
            self._send(number, number % PARTITIONS)
        self._producer.purge()
        self._producer.flush(PATIENCE_S)

    def _send(self, number: int, partition: int) -> None:
        value = value_of(self.name, number)
        more = {"number": number, "partition": partition, "value": value}

        def told(error: object, message: Any) -> None:
            if error:
                self._recorder.note(self.name, Op.WRITE, Kind.UNKNOWN, **more)
            else:
                self._recorder.note(self.name, Op.WRITE, Kind.OK, offset=message.offset(), **more)
                self.acknowledged += 1

        self._recorder.note(self.name, Op.WRITE, Kind.INVOKE, **more)
        try:
            self._producer.produce(TOPIC, value, partition=partition, on_delivery=told)
        except BufferError:
            self._recorder.note(self.name, Op.WRITE, Kind.UNKNOWN, **more)
        self._producer.poll(0.002)


def create_topic(bootstrap: str) -> None:
    admin = AdminClient(quiet(bootstrap))
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(PATIENCE_S)


def has_topic(bootstrap: str) -> bool:
    """Return whether every partition has a leader again."""
    try:
        found = AdminClient(quiet(bootstrap)).list_topics(TOPIC, 10).topics[TOPIC].partitions
    except KafkaException:
        return False
    return len(found) == PARTITIONS and all(each.leader >= 0 for each in found.values())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [2, pytest.param(16, marks=pytest.mark.full)])
def test_acknowledged_records_survive_a_kill_of_the_whole_cluster(kills: int, tmp_path: Path) -> None:
    recorder = Recorder()
    try:
        for life in range(kills):
            with cluster(tmp_path, life) as bootstrap:
                if life == 0:
                    create_topic(bootstrap)
                wait_for("all partitions are led", lambda at=bootstrap: has_topic(at), PATIENCE_S)
                writers = [Writer(recorder, f"w{life}-{each}", bootstrap) for each in range(WRITERS)]
                for writer in writers:
                    writer.start()
                wait_for(
                    "enough is acknowledged",
                    lambda all_of=writers: all(it.acknowledged >= ACKNOWLEDGED_PER_LIFE for it in all_of),
                    PATIENCE_S,
                )
            for writer in writers:
                writer.over.set()
                writer.join(PATIENCE_S)
                assert not writer.is_alive()
        with cluster(tmp_path, kills) as bootstrap:
            wait_for("all partitions are led", lambda: has_topic(bootstrap), PATIENCE_S)
            problems = check(recorder.events, read_everything(bootstrap), GROUP)
    finally:
        recorder.save(tmp_path / "history.jsonl")
    assert not problems, f"{problems[:20]}\nthe history and the cluster's logs are in {tmp_path}"
