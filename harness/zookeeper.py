"""A real ZooKeeper on a free loopback port, from the jars inside the pyspark wheel.

    with zookeeper(tmp_path) as server:
        KazooClient(server.address)

It ends with the block, or with this process if that is killed.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.jars import pyspark_jar
from harness.java import HarnessError, java
from harness.process import HOST, free_ports, last_words, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

_READY_TIMEOUT_S = 180
_TICK_MS = 200
"""Sessions may time out after two ticks, so expiry tests are quick."""


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """A running server."""

    address: str
    process: subprocess.Popen[bytes]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the server: connections stay open without responses."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)


@contextmanager
def zookeeper(
    folder: Path, *, heap: str = "256m", port: int | None = None, fsync: bool = True
) -> Iterator[ZooKeeper]:
    """Run a server with its data and log in `folder`; a later one continues with them.

    Without `fsync` it does not wait for a busy disk, and loses data only in a power failure.
    """
    with ExitStack() as stack:
        if port is None:
            (port,) = stack.enter_context(free_ports(1))
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "zoo.cfg"
        settings = {
            "dataDir": folder / "data",
            "clientPort": port,
            "clientPortAddress": HOST,
            "tickTime": _TICK_MS,
            "maxSessionTimeout": 60_000,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        jars = pyspark_jar("zookeeper-3*.jar").parent
        command = [java(), "-cp", f"{jars}/*", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [] if fsync else ["-Dzookeeper.forceSync=no"]
        command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)]
        log = folder / "zookeeper.log"
        process = stack.enter_context(running(command, log))
        _wait_until_ready(port, process, log)
        yield ZooKeeper(f"{HOST}:{port}", process)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise HarnessError(f"ZooKeeper ended as it started:\n{last_words(log)}")
        if _is_well(port):
            return
        time.sleep(0.05)
    raise HarnessError(f"ZooKeeper was not ready within {_READY_TIMEOUT_S} s:\n{last_words(log)}")


def _is_well(port: int) -> bool:
    """Return whether the server serves; it listens, and says `imok`, before that."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(b"srvr")
            with connection.makefile("rb") as stream:
                return b"Mode: standalone" in stream.read()
    except OSError:
        return False
