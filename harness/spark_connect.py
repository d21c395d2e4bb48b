"""A real Spark Connect server on loopback, from the pyspark wheel.

    with connect_server(tmp_path) as url:
        restow pipeline run --master {url} …

It ends with the block, or with this process if that is killed.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.jars import pyspark_jar, spark_kafka_jars
from harness.java import HarnessError, java
from harness.process import HOST, free_ports, last_words, running
from harness.spark_releases import need_connect
from harness.table_formats import with_formats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

_READY_TIMEOUT_S = 240
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_READY = "Spark Connect server started"


@contextmanager
def connect_server(
    folder: Path, *, cores: int = 2, heap: str = "1g", conf: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Return the server's address once it answers. Its log and scratch files are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    java()
    home = pyspark_jar("spark-core*.jar").parents[1]
    with free_ports(1) as (port,):
        settings = {
            "spark.master": f"local[{cores}]",
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(port),
            "spark.jars": ",".join(str(jar) for jar in spark_kafka_jars()),
            "spark.driver.memory": heap,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": str(cores),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.python.authenticate.socketTimeout": "300s",
            **(conf or {}),
        }
        variables = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        command = ["env", *(f"{name}={value}" for name, value in variables.items())]
        command += [str(home / "bin" / "spark-submit"), "--class", _SERVER]
        for name, value in with_formats(settings, folder / "iceberg").items():
            command += ["--conf", f"{name}={value}"]
        log = folder / "connect.log"
        with running([*command, "spark-internal"], log) as process:
            deadline = time.monotonic() + _READY_TIMEOUT_S
            while _READY not in log.read_text(encoding="utf-8", errors="replace"):
                if process.poll() is not None:
                    raise HarnessError(f"the Connect server ended as it started:\n{last_words(log)}")
                if time.monotonic() > deadline:
                    raise HarnessError(
                        f"the Connect server was not ready in {_READY_TIMEOUT_S} s:\n{last_words(log)}"
                    )
                time.sleep(0.1)
            yield f"sc://{HOST}:{port}"


@contextmanager
def connect_session(folder: Path) -> Iterator[SparkSession]:
    """Run a server, and a session of it, with their files in `folder`."""
    from restow.pipeline.session import session

    need_connect()
    with connect_server(folder) as url, session("tests", master=url) as spark:
        yield spark
