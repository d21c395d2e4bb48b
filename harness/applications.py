"""Applications that come with Apache Kafka: the word count of Kafka Streams, and Kafka Connect's worker.

    with word_count(tmp_path, {"bootstrap.servers": cluster.bootstrap}):
        …
    with connect_worker(tmp_path, {"bootstrap.servers": cluster.bootstrap, …}) as worker:
        worker.configure("source", {"connector.class": …})

Leaving the block kills the process with SIGKILL; a later block with the same folder goes on.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

from harness.jars import KAFKA_4, application_jars, kafka_jars
from harness.java import HarnessError, java
from harness.jvm import SMALL, logging_options
from harness.process import HOST, free_ports, last_words, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from subprocess import Popen

WORDS_IN, WORDS_OUT = "streams-plaintext-input", "streams-wordcount-output"
"""The topics of the word count."""

_WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
_CONNECT = "org.apache.kafka.connect.cli.ConnectDistributed"
_READY_TIMEOUT_S = 300
_REQUEST_TIMEOUT_S = 60
_LATER = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""Answers of a worker that starts, or whose group rebalances."""


@contextmanager
def word_count(folder: Path, settings: Mapping[str, str]) -> Iterator[None]:
    """Run the word count, which reads lines, and writes each word's count whenever that grows."""
    given = {"state.dir": str(folder / "state"), **settings}
    with _application(_WORD_COUNT, folder, given):
        yield


@dataclass(frozen=True, slots=True)
class Worker:
    """A running worker of Kafka Connect, through its REST interface."""

    address: str
    log: Path

    def configure(self, connector: str, settings: Mapping[str, str]) -> None:
        """Create a connector, or change its settings; while the group of workers rebalances, ask again."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not self._asked("PUT", f"/connectors/{connector}/config", settings):
            if time.monotonic() > deadline:
                raise HarnessError(f"Kafka Connect took no settings for {connector}:\n{last_words(self.log)}")
            time.sleep(0.5)

    def is_ready(self) -> bool:
        """Return whether it answers."""
        return self._asked("GET", "/connectors")

    def _asked(self, method: str, path: str, body: object = None) -> bool:
        """Ask; return False if it does not answer yet, or cannot now."""
        connection = HTTPConnection(self.address, timeout=_REQUEST_TIMEOUT_S)
        given = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, given, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read().decode()
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
        if answer.status >= HTTPStatus.BAD_REQUEST and answer.status not in _LATER:
            raise HarnessError(f"Kafka Connect refused {method} {path}: {said}")
        return answer.status < HTTPStatus.BAD_REQUEST


@contextmanager
def connect_worker(folder: Path, settings: Mapping[str, str]) -> Iterator[Worker]:
    """Run a worker in distributed mode, with the file connectors as its plug-ins."""
    with free_ports(1) as (port,):
        address = f"{HOST}:{port}"
        plugins = {"plugin.path": str(application_jars()), "plugin.discovery": "service_load"}
        given = {"listeners": f"http://{address}", **plugins, **settings}
        with _application(_CONNECT, folder, given) as process:
            worker = Worker(address, folder / "log")
            deadline = time.monotonic() + _READY_TIMEOUT_S
            while not worker.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise HarnessError(f"Kafka Connect did not start:\n{last_words(worker.log)}")
                time.sleep(0.2)
            yield worker


@contextmanager
def _application(main: str, folder: Path, settings: Mapping[str, str]) -> Iterator[Popen[bytes]]:
    """Run a main class whose first argument is a file of settings; it logs into `folder`/log."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "settings.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    class_path = f"{kafka_jars(KAFKA_4)}/*:{application_jars()}/*"
    command = [java(), "-Xmx512m", *SMALL, *logging_options("WARN"), "-cp", class_path, main, str(file)]
    with running(command, folder / "log") as process:
        yield process
