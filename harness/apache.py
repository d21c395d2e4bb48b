"""Real Apache Kafka brokers (KRaft, each both broker and controller) on free loopback ports.

    with apache_kafka(tmp_path) as cluster:
        KafkaConsumer(bootstrap_servers=cluster.bootstrap)

Every node is a process of its own in a session of its own. It is killed when the block ends; and
because a shell beside it waits for the end of this process's pipe, also when this process dies.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
from base64 import urlsafe_b64encode
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from harness.jars import KAFKA_VERSION, kafka_jars
from harness.java import HarnessError, java
from harness.jvm import logging_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_HOST = "127.0.0.1"
_READY_TIMEOUT_S = 120
_LAST_CHARACTERS = 4_000

# Java runs until it ends, or until standard input does.
_UNTIL_WE_ARE_GONE = """\
exec 3<&0
"$@" </dev/null 3<&- &
java=$!
(read _ <&3; kill -9 $java) 2>/dev/null &
wait $java
kill $! 2>/dev/null
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers that are up."""

    bootstrap: str
    """host:port of every broker, separated by commas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    id: int
    folder: Path
    broker_port: int
    controller_port: int


@contextmanager
def apache_kafka(
    folder: Path,
    *,
    nodes: int = 1,
    version: str = KAFKA_VERSION,
    settings: Mapping[str, str] | None = None,
    heap: str = "512m",
) -> Iterator[Cluster]:
    """A cluster that keeps its data and logs in `folder`; node ids count from 1."""
    ports = _free_ports(2 * nodes)
    members = [
        _Node(id=i, folder=folder / f"node-{i}", broker_port=ports.pop(), controller_port=ports.pop())
        for i in range(1, nodes + 1)
    ]
    run = [
        java(),
        "-cp",
        f"{kafka_jars(version)}/*",
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
    ]
    cluster_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    with ExitStack() as stack:
        for node in members:
            _write_properties(node, members, settings or {})
            _format(run, node, cluster_id)
        started = [(node, stack.enter_context(_running(run, node))) for node in members]
        deadline = time.monotonic() + _READY_TIMEOUT_S
        for node, process in started:
            _wait_until_ready(node, process, nodes, deadline)
        yield Cluster(bootstrap=",".join(f"{_HOST}:{node.broker_port}" for node in members))


def _write_properties(node: _Node, members: list[_Node], settings: Mapping[str, str]) -> None:
    """Little of everything, so that a laptop can have several."""
    copies = str(min(3, len(members)))
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{m.id}@{_HOST}:{m.controller_port}" for m in members),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"PLAINTEXT://{_HOST}:{node.broker_port},CONTROLLER://{_HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{_HOST}:{node.broker_port}",
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


@contextmanager
def _running(run: list[str], node: _Node) -> Iterator[subprocess.Popen[bytes]]:
    command = ["sh", "-c", _UNTIL_WE_ARE_GONE, "sh", *run, *logging_options("WARN")]
    command += ["kafka.Kafka", str(node.folder / "server.properties")]
    with (
        (node.folder / "kafka.log").open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=node.folder, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            # Java and both shells are one group, led by the shell we started, which ends last.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _wait_until_ready(node: _Node, process: subprocess.Popen[bytes], brokers: int, deadline: float) -> None:
    """Until the node itself tells of all brokers: it listens before it has heard of them."""
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise HarnessError(f"Apache Kafka's node {node.id} ended as it started:\n{_last_words(node)}")
        if _known_brokers(node) == brokers:
            return
        time.sleep(0.05)
    raise HarnessError(
        f"Apache Kafka's node {node.id} was not ready within {_READY_TIMEOUT_S} s:\n{_last_words(node)}"
    )


def _known_brokers(node: _Node) -> int:
    """How many brokers the node's answer to a metadata request (version 1, no topics) begins with."""
    request = struct.pack(">hhihi", 3, 1, 0, -1, 0)
    try:
        with socket.create_connection((_HOST, node.broker_port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as stream:
                answer = stream.read(12)
    except OSError:
        return 0
    if len(answer) < 12:
        return 0
    brokers: int = struct.unpack(">iii", answer)[2]
    return brokers


def _last_words(node: _Node) -> str:
    log = (node.folder / "kafka.log").read_text(encoding="utf-8", errors="replace")
    return log[-_LAST_CHARACTERS:] or "it said nothing"


def _free_ports(count: int) -> list[int]:
    """Ports nobody listens on now. All are held until all are known, so they differ."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((_HOST, 0))
        return [each.getsockname()[1] for each in sockets]
