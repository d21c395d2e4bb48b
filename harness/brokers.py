"""Restow brokers as processes on one real ZooKeeper, to be killed, paused and started again.

    with broker_processes(tmp_path, count=3) as brokers:
        Producer({"bootstrap.servers": brokers.bootstrap})
        brokers[1].kill()
        brokers[1].start()

Everything ends with the block, however that ends, or with this process if that is killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from harness.java import HarnessError
from harness.process import HOST, free_ports, last_words
from harness.zookeeper import zookeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from harness.zookeeper import ZooKeeper

_READY_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 180
SESSION_TIMEOUT_MS = 3_000
_NO_TOUCH = re.compile(
    r"Error: (no ZooKeeper answered|the connection to ZooKeeper was lost|a broker of id \d+ is registered"
    r"|.*session .*(expired|was lost|is over))"
)
"""Output of a broker that ended at its start because the machine hung for longer than its session."""

# A broker reads nothing; when its shell's pipe ends, this process is gone, and the broker must end.
_UNTIL_WE_ARE_GONE = """\
exec 3<&0
(read _ <&3; kill -9 $$) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"""


class BrokerProcess:
    """One `restow broker`, always at the same port and with the same files."""

    def __init__(
        self, broker_id: int, store: str, folder: Path, port: int, options: tuple[str, ...] = ()
    ) -> None:
        self.id = broker_id
        self.data = folder / f"broker-{broker_id}"
        self.log = folder / f"broker-{broker_id}.log"
        self.address = f"{HOST}:{port}"
        self._command = (
            *(sys.executable, "-m", "restow", "broker", "--json", "--log-level", "info"),
            *("--id", str(broker_id), "--store", store, "--data", str(self.data), "--port", str(port)),
            *options,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.is_paused = False
        self.unasked_restarts = 0
        """How often it ended at its start and was restarted: 0 without faults."""

    @property
    def is_running(self) -> bool:
        """Whether there is a process, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Id of the process, if there is one."""
        return self._process.pid if self._process is not None else None

    def begin(self) -> None:
        """Start the process without waiting for it to be ready."""
        if self.is_running:
            raise HarnessError(f"broker {self.id} is running already")
        self._let_go()
        with self.log.open("ab") as file:
            self._process = subprocess.Popen(
                ["sh", "-c", _UNTIL_WE_ARE_GONE, "sh", *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
            )
        self.is_paused = False

    def until_ready(self) -> None:
        """Wait for the line that says so; raise HarnessError with its output if it ends instead.

        A broker that lost ZooKeeper for too long is started again, as an operator would do.
        """
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not (said := self._first_line()):
            words = last_words(self.log)
            if not _NO_TOUCH.match(words.rstrip().rpartition("\n")[2]) or time.monotonic() > deadline:
                raise HarnessError(f"broker {self.id} ended as it started:\n{words}")
            self.unasked_restarts += 1
            self.begin()
        if json.loads(said)["id"] != self.id:
            raise HarnessError(f"broker {self.id} says that it is another: {said!r}")

    def _first_line(self) -> bytes:
        """Return its first line; empty if it has ended instead."""
        assert self._process is not None
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            self._process.wait(_READY_TIMEOUT_S)
        return said

    def start(self) -> None:
        """Start, and wait until it is ready."""
        self.begin()
        self.until_ready()

    def stop(self) -> int:
        """Stop in order, by SIGTERM; return its exit code."""
        process = self._running()
        process.terminate()
        code = process.wait(_STOP_TIMEOUT_S)
        self._let_go()
        return code

    def kill(self) -> None:
        """Kill with SIGKILL, also when paused."""
        process = self._running()
        process.kill()
        process.wait()
        self._let_go()
        self.is_paused = False

    def pause(self) -> None:
        """Pause with SIGSTOP."""
        os.kill(self._running().pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """Resume with SIGCONT."""
        os.kill(self._running().pid, signal.SIGCONT)
        self.is_paused = False

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise HarnessError(f"broker {self.id} is not running:\n{last_words(self.log)}")
        return self._process

    def _let_go(self) -> None:
        """Close the pipes. The watching shell ends with them."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def end(self) -> None:
        """End the process in any state."""
        if self.is_running:
            self.kill()
        self._let_go()


class BrokerProcesses(dict[int, BrokerProcess]):
    """The brokers of one cluster by id, counted from 1."""

    def __init__(self, folder: Path, port: int, brokers: Mapping[int, BrokerProcess]) -> None:
        super().__init__(brokers)
        self._folder = folder
        self._port = port
        self._running = ExitStack()
        self.zookeeper = self._start_zookeeper()

    def restart_zookeeper(self) -> None:
        """Kill ZooKeeper with SIGKILL, and start a new one with the same files."""
        self._running.close()
        self.zookeeper = self._start_zookeeper()

    def _start_zookeeper(self) -> ZooKeeper:
        return self._running.enter_context(zookeeper(self._folder, port=self._port, fsync=False))

    def end(self) -> None:
        """End everything in any state."""
        for broker in self.values():
            broker.end()
        self._running.close()

    @property
    def unasked_restarts(self) -> dict[int, int]:
        """Return how often each broker was restarted by this harness, by id."""
        return {broker.id: broker.unasked_restarts for broker in self.values() if broker.unasked_restarts}

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, separated by commas."""
        return ",".join(broker.address for broker in self.values())

    def start_all(self) -> None:
        """Start all brokers that are not running, in parallel."""
        begun = [broker for broker in self.values() if not broker.is_running]
        for broker in begun:
            broker.begin()
        for broker in begun:
            broker.until_ready()


@contextmanager
def broker_processes(
    folder: Path,
    *,
    count: int = 3,
    log_dirs: int = 1,
    configs: Mapping[str, str] | None = None,
) -> Iterator[BrokerProcesses]:
    """Run a ZooKeeper and that many brokers, all ready. Their files and logs are in `folder`."""
    settings = {
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "offsets.topic.num.partitions": "2",
        "offsets.topic.replication.factor": str(min(count, 3)),
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "auto.create.topics.enable": "false",
        **(configs or {}),
    }
    options = ["--log-dirs", str(log_dirs)]
    for name, value in settings.items():
        options += ["--config", f"{name}={value}"]
    with free_ports(count + 1) as (zookeeper_port, *ports):
        store = f"zookeeper://{HOST}:{zookeeper_port}/restow"
        brokers = BrokerProcesses(
            folder / "zookeeper",
            zookeeper_port,
            {
                number: BrokerProcess(number, store, folder, port, tuple(options))
                for number, port in enumerate(ports, start=1)
            },
        )
        try:
            brokers.start_all()
            yield brokers
        finally:
            brokers.end()


def wait_for(what: str, is_so: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait until the condition holds; raise HarnessError after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise HarnessError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.05)
