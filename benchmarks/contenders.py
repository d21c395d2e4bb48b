"""The clusters that `benchmarks.cluster` compares: three brokers each, with their default settings.

Apache's brokers get the JVM options of Kafka's own start scripts and its default settings. Leaders do not
move by themselves on any side. Everything ends with the block, and its files with the folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from harness.apache import apache_kafka
from harness.certificates import PASSWORD, certificates
from harness.java import HarnessError
from harness.jvm import AS_KAFKA
from harness.process import last_words, running
from harness.zookeeper import zookeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from harness.certificates import Certificates

BROKERS = 3
_HEAP = "1G"
_ZOOKEEPER_HEAP = "512M"
_READY_TIMEOUT_S = 60
_LOOK_S = 0.005
_DEFAULTS = {
    "auto.leader.rebalance.enable": "false",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
    "log.cleaner.dedupe.buffer.size": "134217728",
}
"""Kafka's own, where the harness asks for less."""


@dataclass(frozen=True, slots=True)
class Up:
    """A running cluster."""

    bootstrap: str
    started_s: float
    """The time of its start, by `time.monotonic`."""
    brokers: tuple[psutil.Process, ...]
    """The brokers' processes, without ZooKeeper's."""
    zookeeper: str = ""
    """The address of its ZooKeeper, if it has one."""
    secured: Mapping[str, str] = field(default_factory=dict)
    """Settings of a librdkafka client that connects by TLS, if the cluster has such a listener."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One kind of cluster, and how to start it in a folder."""

    name: str
    start: Callable[[Path], AbstractContextManager[Up]]


@contextmanager
def embedded(folder: Path, brokers: int = BROKERS, **settings: str) -> Iterator[Up]:
    """Start our cluster with all brokers in one process. Settings have _ for the dots of Kafka's names."""
    log = folder / "child.log"
    given = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    command = _python("embedded_child.py", folder / "data", brokers, *given)
    started_s = time.monotonic()
    with running(command, log) as process:
        bootstrap = _announced(process, log)["bootstrap"]
        yield Up(bootstrap, started_s, servers((process,)))


@contextmanager
def embedded_tls(folder: Path) -> Iterator[Up]:
    """Start our cluster with a second listener, for TLS. Brokers reach each other at the first."""
    log, made = folder / "child.log", certificates(folder / "certificates")
    given = (f"ssl.keystore.location={made.server}", "PLAINTEXT", "SSL")
    started_s = time.monotonic()
    with running(_python("embedded_child.py", folder / "data", BROKERS, *given), log) as process:
        told = _announced(process, log)
        up = Up(told["bootstrap"], started_s, servers((process,)))
        yield replace(up, secured=_by_tls(told["at"]["SSL"], made))


@contextmanager
def apart(folder: Path) -> Iterator[Up]:
    """Start our cluster with a process for each broker, on a ZooKeeper whose start is counted."""
    started_s = time.monotonic()
    with ExitStack() as stack:
        server = stack.enter_context(zookeeper(folder / "zookeeper", heap=_ZOOKEEPER_HEAP))
        logs = [folder / f"broker-{number}.log" for number in range(BROKERS)]
        processes = [
            stack.enter_context(
                running(_python("broker_child.py", number, server.address, folder / f"data-{number}"), log)
            )
            for number, log in enumerate(logs)
        ]
        told = [_announced(process, log) for process, log in zip(processes, logs, strict=True)]
        addresses = [each["bootstrap"] for each in told]
        yield Up(",".join(addresses), started_s, servers(processes), server.address)


@contextmanager
def apache_kraft(folder: Path) -> Iterator[Up]:
    """Start Apache Kafka 4.3.1: each node is broker and controller. Formatting its folders does not count."""
    with apache_kafka(
        folder, nodes=BROKERS, version="4.3.1", settings=_DEFAULTS, heap=_HEAP, options=_as_kafka()
    ) as cluster:
        yield Up(cluster.bootstrap, cluster.launched_s, servers(cluster.processes))


@contextmanager
def apache_kraft_tls(folder: Path) -> Iterator[Up]:
    """Start Apache Kafka 4.3.1 with another listener, for TLS. Brokers reach each other without."""
    made = certificates(folder / "certificates")
    stores = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(made.server_store),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    with apache_kafka(
        folder,
        nodes=BROKERS,
        version="4.3.1",
        settings={**_DEFAULTS, **stores},
        heap=_HEAP,
        options=_as_kafka(),
        listeners={"TLS": "SSL"},
    ) as cluster:
        up = Up(cluster.bootstrap, cluster.launched_s, servers(cluster.processes))
        yield replace(up, secured=_by_tls(cluster.at["TLS"], made))


def _by_tls(bootstrap: str, made: Certificates) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "ssl",
        "ssl.ca.location": str(made.authority),
    }


@contextmanager
def apache_zookeeper(folder: Path) -> Iterator[Up]:
    """Start Apache Kafka 3.9.1 on a ZooKeeper, whose start is counted."""
    started_s = time.monotonic()
    with (
        zookeeper(folder / "zookeeper", heap=_ZOOKEEPER_HEAP) as server,
        apache_kafka(
            folder / "kafka",
            nodes=BROKERS,
            version="3.9.1",
            settings=_DEFAULTS,
            heap=_HEAP,
            options=_as_kafka(),
            zookeeper=server.address,
        ) as cluster,
    ):
        yield Up(cluster.bootstrap, started_s, servers(cluster.processes), server.address)


OURS = Contender("Restow", embedded)
OURS_APART = Contender("Restow, a process each", apart)
KRAFT = Contender("Apache Kafka 4.3.1", apache_kraft)
ZOOKEEPER = Contender("Apache Kafka 3.9.1", apache_zookeeper)
OURS_TLS = Contender("Restow, TLS", embedded_tls)
KRAFT_TLS = Contender("Apache Kafka 4.3.1, TLS", apache_kraft_tls)


def _as_kafka() -> tuple[str, ...]:
    return (*AS_KAFKA, f"-Xms{_HEAP}", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true")


@contextmanager
def bytecode() -> Iterator[None]:
    """Keep compiled bytecode for our processes, as an installation does, even where none is kept."""
    names = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="restow-bench-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        try:
            for module in ("restow.cluster.embedded", "restow.cluster.standalone", "restow.runtime.loop"):
                subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
            yield
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]
            os.environ.update(before)


def _python(script: str, *arguments: object) -> list[str]:
    """Return the command that runs a script beside this one with the same Python."""
    return [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]


def _announced(process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    """Return the first line that the child prints: where its brokers listen."""
    deadline_s = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline_s:
        line, end, _ = log.read_text(encoding="utf-8").partition("\n")
        if end and line.startswith("{"):
            told: dict[str, Any] = json.loads(line)
            return told
        if process.poll() is not None:
            break
        time.sleep(_LOOK_S)
    raise HarnessError(f"our brokers did not start:\n{last_words(log)}")


def servers(shells: Iterable[subprocess.Popen[bytes]]) -> tuple[psutil.Process, ...]:
    """Return the processes that the shells run: the harness starts each server through a shell."""
    found = [child for shell in shells for child in psutil.Process(shell.pid).children(recursive=True)]
    return tuple(process for process in found if process.name() != "sh")
