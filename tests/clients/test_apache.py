"""The harness itself: clusters and JVMs start, and leave nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.apache

WAIT_S = 120

JVM = """
from harness.jvm import kafka_jvm
with kafka_jvm() as gateway:
    print(gateway.jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    input()
"""
BROKER = """
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from harness.apache import apache_kafka
with apache_kafka(Path(sys.argv[1])):
    print("up", flush=True)
    input()
"""


def test_three_brokers_form_one_cluster(jars: Path, tmp_path: Path) -> None:
    from kafka.admin import KafkaAdminClient

    with needs_kafka(), apache_kafka(tmp_path / "kafka", nodes=3) as cluster:
        assert len(cluster.bootstrap.split(",")) == 3
        with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as admin:
            # A broker that stalled for some seconds is missing until it registers again.
            wait_until(lambda: len(admin.describe_cluster()["brokers"]) == 3)
    wait_until_nobody_mentions(str(tmp_path))


def test_broker_ends_with_the_process_that_started_it(jars: Path, tmp_path: Path) -> None:
    with started(BROKER, str(tmp_path / "kafka")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until_nobody_mentions(str(tmp_path))


def test_jvm_ends_with_the_process_that_started_it(jars: Path) -> None:
    with started(JVM) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_running(pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not is_running(pid))


def started(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=pipe, stdout=pipe)


def wait_until_nobody_mentions(text: str) -> None:
    """Wait until no process has the text in its command line (a pytest folder's name is unique)."""

    def nobody() -> bool:
        return not any(text in command_line(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit())

    wait_until(nobody)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not so after {WAIT_S} s"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Return whether the process runs; a zombie has no command line any more."""
    return command_line(pid) != ""


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""
