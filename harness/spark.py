"""A small Spark session in local mode, with the connector to Kafka on its class path.

    with spark_session(tmp_path) as spark:
        spark.read.format("kafka")…

Its JVM ends with the block, or with this process if that is killed. One at a time: pyspark keeps its
gateway in a class variable. Other JVMs of this process and its handling of ctrl-C stay as they are.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.jars import spark_kafka_jars
from harness.java import java
from harness.table_formats import with_formats
from restow.pipeline.class_archive import ClassArchive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

_STOP_TIMEOUT_S = 20


@contextmanager
def spark_session(folder: Path, *, cores: int = 2, heap: str = "768m") -> Iterator[SparkSession]:
    """Run a session with its files in `folder`. Raises Missing without Java or the jars."""
    jars = spark_kafka_jars()
    classes = ClassArchive(java()).option(record=False)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": f"local[{cores}]",
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {classes}",
        "spark.python.authenticate.socketTimeout": "300s",
        # As in sessions of our commands: otherwise each column asks the JVM three times more.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    builder = SparkSession.builder.appName("restow")
    for name, value in with_formats(settings, folder / "iceberg").items():
        builder = builder.config(name, value)
    at_ctrl_c = signal.getsignal(signal.SIGINT)
    with _environment(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable):
        spark = builder.getOrCreate()
    signal.signal(signal.SIGINT, at_ctrl_c)
    spark.sparkContext.setLogLevel("OFF")
    gateway = spark.sparkContext._gateway  # noqa: SLF001 (the only way to end the JVM before we end)
    assert gateway is not None
    try:
        with _other_jvms_raise_as_before(gateway):
            yield spark
    finally:
        spark.stop()
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
        # Threads of py4j leave their sockets to the garbage collector, which would warn later.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@contextmanager
def _other_jvms_raise_as_before(gateway: Any) -> Iterator[None]:
    """Let pyspark convert the errors of this JVM alone: a session changes how py4j raises, for every JVM."""
    from py4j import java_gateway, protocol
    from pyspark.errors.exceptions import captured

    convert = captured.convert_exception

    def convert_own(e: Any) -> captured.CapturedException:
        if e._gateway_client is gateway._gateway_client:  # noqa: SLF001
            return convert(e)
        return captured.UnknownException(desc="", stackTrace="")  # pyspark raises the original then

    captured.convert_exception = convert_own
    try:
        yield
    finally:
        captured.convert_exception = convert
        java_gateway.get_return_value = protocol.get_return_value


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set environment variables during the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
