"""Ctrl-C in a terminal: the run asks what to do, and does it."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from restow.client import ConnectionSettings, NewTopic, connected
from restow.cluster.threaded import ThreadedCluster
from restow.model import TopicPartition
from restow.plan.files.text import dumps
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.snapshot import capture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAIT_S = 180
SLOWLY = "5kB/s"
"""Slow enough that only a small part is copied while a test watches, even on a machine that stalls."""


class Terminal:
    """A process in a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self._process, self._screen = process, screen
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, pattern: str) -> None:
        until_s = time.monotonic() + WAIT_S
        while not re.search(pattern, self.seen):
            assert time.monotonic() < until_s, f"{pattern!r} is not on the screen: {self.seen[-2000:]}"
            if select.select([self._screen], [], [], 0.2)[0]:
                self.seen += self._read()

    def forget(self) -> None:
        """Wait only for output from now on."""
        self.seen = ""

    def end(self) -> int:
        """Wait for the end; return the exit code."""
        until_s = time.monotonic() + WAIT_S
        while self._process.poll() is None and time.monotonic() < until_s:
            if select.select([self._screen], [], [], 0.2)[0]:
                self.seen += self._read()
        while select.select([self._screen], [], [], 0.2)[0] and (more := self._read()):
            self.seen += more
        return self._process.wait(1)

    def _read(self) -> str:
        try:
            return os.read(self._screen, 65536).decode(errors="replace")
        except OSError:
            return ""


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    screen, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "restow", *arguments],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "COLUMNS": "100", "LINES": "40", "TERM": "xterm", "NO_COLOR": "1"},
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


async def prepared(bootstrap: str, plan: Path) -> None:
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        await admin.create_topics([NewTopic(name="orders", by_hand={0: (0, 1)})])
        await asyncio.to_thread(write, bootstrap)
        snapshot = await capture(admin, SystemClock())
        targets = [Target(partition=TopicPartition("orders", 0), replicas=(0, 2))]
        plan.write_text(dumps(plan_from_targets(snapshot, targets, created_ms=1)))


def write(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.size": 16_384})
    for _ in range(3000):
        producer.produce("orders", bytes(1000))
        producer.poll(0)
    assert producer.flush(60) == 0


async def state(bootstrap: str) -> tuple[tuple[int, ...], bool]:
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        (topic,) = await admin.describe_topics(["orders"])
        return topic.partitions[0].replicas, bool(await admin.list_partition_reassignments())


def test_ctrl_c_asks_what_to_do(tmp_path: Path) -> None:
    with ThreadedCluster(3) as cluster:
        plan = tmp_path / "plan.json"
        asyncio.run(prepared(cluster.bootstrap, plan))
        common = ("-b", cluster.bootstrap, "--journal", str(tmp_path / "state"))
        with terminal("execute", str(plan), "--throttle", SLOWLY, *common) as screen:
            screen.wait_for(r"Carry it out\? \[y/N\]")
            assert "1 partition, 3.0 MB to copy" in screen.seen
            assert f"throttle  {SLOWLY} per broker" in screen.seen
            screen.type("n\n")
            assert screen.end() == 1, screen.seen
        assert asyncio.run(state(cluster.bootstrap)) == ((0, 1), False)

        with terminal("execute", str(plan), "--throttle", SLOWLY, *common) as screen:
            screen.wait_for(r"Carry it out\? \[y/N\]")
            screen.type("y\n")
            screen.wait_for("1 under way")
            screen.interrupt()
            screen.wait_for("ancel the moves")
            screen.forget()
            screen.wait_for(
                "(?s)ancel the moves.*under way.*ancel the moves.*under way"
            )  # it is drawn while it asks
            screen.type("p")
            screen.wait_for("paused: an operator paused the run")
            screen.forget()
            screen.interrupt()
            screen.wait_for("ancel the moves")
            screen.type("l")
            assert screen.end() == 1, screen.seen
            assert "left running" in screen.seen
        assert asyncio.run(state(cluster.bootstrap))[1], "what was left goes on"

        with terminal("resume", "--yes", "--throttle", SLOWLY, *common) as screen:
            screen.wait_for("1 under way")
            screen.interrupt()
            screen.wait_for("ancel the moves")
            screen.type("c")
            assert screen.end() == 1, screen.seen
            assert "cancelled" in screen.seen
        assert asyncio.run(state(cluster.bootstrap)) == ((0, 1), False)

        with terminal("resume", "--yes", "--throttle", "none", *common) as screen:
            assert screen.end() == 0, screen.seen
            assert "done" in screen.seen
        assert asyncio.run(state(cluster.bootstrap)) == ((0, 2), False)
