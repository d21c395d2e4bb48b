"""A real Spark standalone cluster on loopback: a master and workers, from the pyspark wheel.

    with spark_cluster(tmp_path) as master:
        restow pipeline run --master {master} …

Every process ends with the block, or with this process if that is killed.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from harness.jars import pyspark_jar
from harness.java import HarnessError, java
from harness.process import HOST, free_ports, last_words, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

_READY_TIMEOUT_S = 120
_MEMORY = "700m"


@contextmanager
def spark_cluster(folder: Path, *, workers: int = 2) -> Iterator[str]:
    """Return the master's address once every worker is connected. Logs and scratch files are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        port, page, *pages = stack.enter_context(free_ports(2 + workers))
        address = f"spark://{HOST}:{port}"
        master = ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port", str(port)]
        log = folder / "master.log"
        process = stack.enter_context(running(_command(folder, *master, "--webui-port", str(page)), log))
        _wait_for("I have been elected leader", 1, process, log)
        for number in range(workers):
            home = folder / f"worker-{number}"
            home.mkdir()
            worker = ["org.apache.spark.deploy.worker.Worker", "--host", HOST, "--cores", "1"]
            worker += ["--memory", _MEMORY, "--work-dir", str(home), "--webui-port", str(pages[number])]
            stack.enter_context(running(_command(folder, *worker, address), folder / f"worker-{number}.log"))
        _wait_for("Registering worker", workers, process, log)
        yield address


def _command(folder: Path, *arguments: str) -> list[str]:
    """Return the command of the wheel's scripts, with loopback addresses and scratch files in `folder`.

    Workers are killed, and would otherwise leave their scratch files in the common folder.
    """
    home = pyspark_jar("spark-core*.jar").parents[1]
    java()
    variables = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
    }
    settings = [f"{name}={value}" for name, value in variables.items() if value]
    return ["env", *settings, str(home / "bin" / "spark-class"), *arguments]


def _wait_for(words: str, times: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise HarnessError(f"Spark's master ended as it started:\n{last_words(log)}")
        if log.read_text(encoding="utf-8", errors="replace").count(words) >= times:
            return
        time.sleep(0.1)
    raise HarnessError(f"Spark's cluster was not ready in {_READY_TIMEOUT_S} s:\n{last_words(log)}")
