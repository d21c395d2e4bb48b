"""Real Apache Kafka brokers on free loopback ports: KRaft (both roles in each node) or on a ZooKeeper.

    with apache_kafka(tmp_path) as cluster:
        KafkaConsumer(bootstrap_servers=cluster.bootstrap)

Every node is a separate process, which ends with the block, or with this process if that is killed.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import subprocess
import time
from base64 import urlsafe_b64encode
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psutil

from harness.cache import fetched_once
from harness.jars import KAFKA_VERSION, kafka_jars
from harness.java import HarnessError, java
from harness.jvm import SMALL, logging_options
from harness.process import HOST, free_ports, last_words, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_READY_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster."""

    bootstrap: str
    """host:port of every broker, separated by commas."""
    processes: tuple[subprocess.Popen[bytes], ...]
    """One shell per node, whose child is Java."""
    launched_s: float
    """`time.monotonic` at the start of the first node, after the folders were formatted."""
    brokers: Mapping[int, Broker]
    """By id, to be stopped and started one by one."""
    at: Mapping[str, str]
    """`bootstrap` of each listener by name: PLAINTEXT, and the requested ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    id: int
    folder: Path
    broker_port: int
    controller_port: int
    other_ports: Mapping[str, int]
    """Ports of further listeners, by name."""

    @property
    def listeners(self) -> str:
        """Return all listeners for clients."""
        ports = {"PLAINTEXT": self.broker_port, **self.other_ports}
        return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())

    @property
    def log(self) -> Path:
        return self.folder / "kafka.log"


class Broker:
    """One node, always at the same port and with the same files."""

    def __init__(self, node: _Node, run: Sequence[str]) -> None:
        self._node = node
        self._run = run
        self._running = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self._node.broker_port

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process without waiting for it to be ready."""
        command = [*self._run, *logging_options("WARN"), "kafka.Kafka"]
        command.append(str(self._node.folder / "server.properties"))
        self._process = self._running.enter_context(running(command, self._node.log))
        return self._process

    def until_ready(self, brokers: int, deadline_s: float | None = None) -> None:
        """Wait until it knows that many brokers."""
        assert self._process is not None
        deadline_s = time.monotonic() + _READY_TIMEOUT_S if deadline_s is None else deadline_s
        _wait_until_ready(self._node, self._process, brokers, deadline_s)

    def stop(self) -> None:
        """Stop in order, by SIGTERM to Java, the shell's child."""
        assert self._process is not None
        for child in psutil.Process(self._process.pid).children():
            if child.name() == "java":
                child.terminate()
        self._process.wait(_READY_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """Kill with SIGKILL."""
        self._running.close()
        self._process = None


@contextmanager
def apache_kafka(
    folder: Path,
    *,
    nodes: int = 1,
    version: str = KAFKA_VERSION,
    settings: Mapping[str, str] | None = None,
    heap: str = "512m",
    options: Sequence[str] = SMALL,
    zookeeper: str | None = None,
    listeners: Mapping[str, str] | None = None,
    log_dirs: int = 1,
    racks: Sequence[str] = (),
    beside: int = 0,
) -> Iterator[Cluster]:
    """Run a cluster with its data and logs in `folder`; node ids count from 1.

    With a ZooKeeper address it keeps its metadata there, as Kafka did before version 4. Besides the default
    listener, others may have other security protocols: `{"LOGIN": "SASL_SSL"}`. Each node has that many log
    dirs, and racks are dealt to nodes in turn. `beside` brokers that the caller runs are members of the same
    cluster already.
    """
    others = dict(listeners or {})
    run = [java(), "-cp", f"{kafka_jars(version)}/*", f"-Xmx{heap}", *options]
    run += class_archive(version) if options == SMALL else []
    # It starts with "AA", because the format tool would take an id with a leading dash for an option.
    cluster_id = urlsafe_b64encode(b"\0" + uuid4().bytes[1:]).decode().rstrip("=")
    with ExitStack() as stack:
        ports = stack.enter_context(free_ports((2 + len(others)) * nodes))
        members = [
            _Node(
                id=i,
                folder=folder / f"node-{i}",
                broker_port=ports.pop(),
                controller_port=ports.pop(),
                other_ports={name: ports.pop() for name in others},
            )
            for i in range(1, nodes + 1)
        ]
        for node in members:
            roles = _kraft_properties(node, members) if zookeeper is None else _on(zookeeper, node)
            protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **others}
            roles["listener.security.protocol.map"] = ",".join(f"{n}:{p}" for n, p in protocols.items())
            if log_dirs > 1:
                roles["log.dirs"] = ",".join(str(node.folder / f"data-{i}") for i in range(log_dirs))
            if racks:
                roles["broker.rack"] = racks[(node.id - 1) % len(racks)]
            _write_properties(node, members, {**roles, **(settings or {})})
            if zookeeper is None:
                _format(run, node, cluster_id)
        brokers = {node.id: Broker(node, run) for node in members}
        for broker in brokers.values():
            stack.callback(broker.kill)
        launched_s = time.monotonic()
        processes = tuple(broker.launch() for broker in brokers.values())
        for broker in brokers.values():
            broker.until_ready(nodes + beside, launched_s + _READY_TIMEOUT_S)
        yield Cluster(
            bootstrap=",".join(f"{HOST}:{node.broker_port}" for node in members),
            processes=processes,
            launched_s=launched_s,
            brokers=brokers,
            at={
                name: ",".join(f"{HOST}:{node.other_ports.get(name, node.broker_port)}" for node in members)
                for name in ("PLAINTEXT", *others)
            },
        )


@cache
def class_archive(version: str) -> list[str]:
    """Return the JVM options that read that Kafka's classes from an archive; make it once, in the cache.

    With it, a broker starts with half of the work. A broker writes it as it ends. Java itself ignores an
    archive that does not fit.
    """
    home = Path(java()).resolve()
    made_for = repr((home, home.stat().st_mtime_ns, kafka_jars(version)))
    name = f"apache-kafka-{version}-classes-{hashlib.sha256(made_for.encode()).hexdigest()[:16]}"

    def record(partial: Path) -> Path:
        kept = partial / "kept"
        kept.mkdir()
        options = (*SMALL, f"-XX:ArchiveClassesAtExit={kept / 'classes.jsa'}")
        with apache_kafka(partial / "kafka", version=version, options=options) as cluster:
            cluster.brokers[1].stop()
        return kept

    archive = fetched_once(name, f"the classes of Apache Kafka {version} (50 MB)", record) / "classes.jsa"
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def _kraft_properties(node: _Node, members: list[_Node]) -> dict[str, str]:
    """Return settings under which a slow node on a busy machine is not taken for dead."""
    return {
        "broker.session.timeout.ms": "30000",
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{m.id}@{HOST}:{m.controller_port}" for m in members),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{node.listeners},CONTROLLER://{HOST}:{node.controller_port}",
    }


def _on(zookeeper: str, node: _Node) -> dict[str, str]:
    return {
        "broker.id": str(node.id),
        "zookeeper.connect": zookeeper,
        "listeners": node.listeners,
    }


def _write_properties(node: _Node, members: list[_Node], settings: Mapping[str, str]) -> None:
    """Write small settings, so that a laptop can run several nodes."""
    copies = str(min(3, len(members)))
    properties = {
        "advertised.listeners": node.listeners,
        "log.dirs": str(node.folder / "data"),
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.cleaner.dedupe.buffer.size": "2097152",
        "auto.create.topics.enable": "false",
        **settings,
    }
    node.folder.mkdir(parents=True)
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    (node.folder / "server.properties").write_text(text, encoding="utf-8")


def _format(run: list[str], node: _Node, cluster_id: str) -> None:
    properties = str(node.folder / "server.properties")
    command = [*run, *logging_options("ERROR"), "kafka.tools.StorageTool"]
    command += ["format", "--cluster-id", cluster_id, "--config", properties]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessError(f"Apache Kafka could not format {node.folder}:\n{done.stdout}{done.stderr}")


def _wait_until_ready(node: _Node, process: subprocess.Popen[bytes], brokers: int, deadline: float) -> None:
    """Wait until the node knows all brokers: it listens before that."""
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise HarnessError(f"Apache Kafka's node {node.id} ended as it started:\n{last_words(node.log)}")
        if _known_brokers(node) == brokers:
            return
        time.sleep(0.05)
    raise HarnessError(
        f"Apache Kafka's node {node.id} was not ready within {_READY_TIMEOUT_S} s:\n{last_words(node.log)}"
    )


def _known_brokers(node: _Node) -> int:
    """Return the number of brokers in the node's metadata response (version 1, no topics)."""
    request = struct.pack(">hhihi", 3, 1, 0, -1, 0)
    try:
        with socket.create_connection((HOST, node.broker_port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as stream:
                answer = stream.read(12)
    except OSError:
        return 0
    if len(answer) < 12:
        return 0
    brokers: int = struct.unpack(">iii", answer)[2]
    return brokers
