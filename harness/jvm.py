"""One JVM with Apache Kafka's classes, and the py4j gateway to it.

    with kafka_jvm() as gateway:
        gateway.jvm.java.lang.System.currentTimeMillis()

A call takes about 0.3 ms whatever it does, so large inputs are sent as one byte array for Kafka's own
parsers, not object by object.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from harness.jars import KAFKA_VERSION, kafka_jars, pyspark_jar
from harness.java import HarnessError, java

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from py4j.java_gateway import JavaGateway

_LOGGING = Path(__file__).with_name("log4j.properties")
_LOGGING_2 = Path(__file__).with_name("log4j2.properties")
_STOP_TIMEOUT_S = 10

SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For tests: quick to start, little memory, and no long optimizing of code that soon ends."""

AS_KAFKA = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""For benchmarks: the performance options of Kafka's own start scripts."""


def logging_options(level: str, *, to: str = "err") -> list[str]:
    """Return JVM options that let Kafka log from this level on (OFF, WARN, INFO, …), to stderr or nowhere."""
    before_4 = f"-Dlog4j.configuration={_LOGGING.as_uri()}"
    since_4 = f"-Dlog4j2.configurationFile={_LOGGING_2.as_uri()}"
    return [before_4, since_4, f"-Drestow.log.level={level}", f"-Drestow.log.to={to}"]


@contextmanager
def kafka_jvm(
    version: str = KAFKA_VERSION,
    *,
    heap: str = "1g",
    log_level: str = "OFF",
    options: Sequence[str] = SMALL,
) -> Iterator[JavaGateway]:
    """Run a gateway to a new JVM, which ends with the block, or with this process if that is killed.

    Kafka's log goes nowhere; the level and the options matter for timings.
    """
    from py4j.java_gateway import GatewayParameters, JavaGateway

    class_path = f"{pyspark_jar('py4j-*.jar')}:{kafka_jars(version)}/*"
    command = [
        java(),
        "-cp",
        class_path,
        f"-Xmx{heap}",
        *options,
        *logging_options(log_level, to="nowhere"),
    ]
    command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    with tempfile.TemporaryFile() as errors, _process(command, errors) as process:
        assert process.stdout is not None
        port, token = _greeting(process.stdout, errors)
        threading.Thread(target=_discard, args=(process.stdout,), daemon=True).start()
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield gateway
        finally:
            gateway.shutdown()


@contextmanager
def _process(command: list[str], errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the gateway server. It ends when its standard input is closed, so also when this process dies."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _greeting(output: IO[bytes], errors: IO[bytes]) -> tuple[int, str]:
    """Read the gateway server's port and token, each on a line."""
    port, token = output.readline().strip(), output.readline().strip()
    if not (port.isdigit() and token):
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
        raise HarnessError(f"the JVM for Apache Kafka's classes did not start: {said or 'it said nothing'}")
    return int(port), token.decode()


def _discard(output: IO[bytes]) -> None:
    for _ in output:
        pass
