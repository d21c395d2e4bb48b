"""A Spark session for a command: the same code on a laptop and on a cluster.

    with session("collect", master="local[*]") as spark:
        spark.read.format("restow.replicas")…

With a `local` master the session uses only the loopback interface, has no web page and takes little memory,
unless settings say otherwise. To any other master it ships this package; the dependencies must be installed
there. Under spark-submit it uses the submitted session. Spark's log goes to a file, not to the terminal. An
interrupted block ends at once, without another call to the JVM.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput, RestowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from pyspark.sql import SparkSession


KAFKA_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
"""Spark's Kafka connector, fetched when a stream reads or writes a topic, unless `spark.jars` has it."""
LOCAL = "local[*]"

_ALWAYS = {
    # Samples and days are in UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # JAAS puts the password in a property whose name does not say so.
    "spark.sql.redaction.options.regex": "(?i)url|jaas|password|keystore.key",
}
_WHEN_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}
_SHUFFLED_PER_CORE = 8
_LAST_LINES = 12
_STOP_TIMEOUT_S = 20


class NoSpark(RestowError):
    """Spark cannot be used: Spark or Java is not installed, or Spark does not start."""


@contextmanager
def session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    kafka: bool = False,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Start a session with Restow's sources for this block.

    `kafka` adds Spark's Kafka connector. `log` keeps Spark's log; without it the log is discarded, and an
    error shows its last lines if Spark does not start.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise NoSpark(f"Spark is not installed ({error}): pip install 'restow[spark]'") from error
    from restow.pipeline.sources import register

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if SparkSession.getActiveSession() is not None:
        raise NoSpark("there is a Spark session in this process already: end it first")
    settings = settings_for(name, master, conf or {}, kafka=kafka, submitted=submitted)
    with ExitStack() as ending:
        _hush_py4j(ending)
        if not submitted:
            with _undisturbed():
                _launch(settings, log, ending)
        ending.push(_forget_if_interrupted)
        with _undisturbed():
            SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        ending.push(partial(_stop_unless_interrupted, spark))
        spark.sparkContext.setLogLevel("ERROR" if log is None else "WARN")
        if not (spark.sparkContext.master or "").startswith("local"):
            spark.sparkContext.addPyFile(_package(ending))
        register(spark)
        yield spark


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay ctrl-C until the block ends, and restore the handler that Spark replaces.

    A JVM whose start is interrupted would stay alive. Spark's own handler calls the JVM in the middle of
    another call.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    ours = {each: handler for each, handler in before.items() if callable(handler)}
    heard: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            ours[signal.Signals(number)](number, frame)

    for each in ours:
        signal.signal(each, note)
    try:
        yield
    finally:
        for each, handler in ours.items():
            signal.signal(each, handler)
    for number in heard:
        ours[signal.Signals(number)](number, None)


def _hush_py4j(ending: ExitStack) -> None:
    """Silence py4j, which also raises what it logs, by its own loggers or by the root logger."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    root.addFilter(_is_not_py4j)
    ending.callback(root.removeFilter, _is_not_py4j)
    ending.callback(own.setLevel, own.level)
    own.setLevel(logging.CRITICAL + 1)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _stop_unless_interrupted(spark: SparkSession, kind: type[BaseException] | None, *_: object) -> None:
    """Stop the session in order, with calls to the JVM, unless the block was interrupted."""
    if not _is_interrupt(kind):
        spark.stop()


def _forget_if_interrupted(kind: type[BaseException] | None, *_: object) -> None:
    """Drop an interrupted session without calling the JVM, which may still answer the last call."""
    if not _is_interrupt(kind):
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context._jsc = None  # noqa: SLF001
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


def _is_interrupt(kind: type[BaseException] | None) -> bool:
    return kind is not None and not issubclass(kind, Exception)


def settings_for(
    name: str, master: str | None, conf: Mapping[str, str], *, kafka: bool = False, submitted: bool = False
) -> dict[str, str]:
    """Return our settings, overridden by the given ones."""
    found = {"spark.app.name": f"restow {name}", **_ALWAYS}
    if not submitted or master is not None:
        found["spark.master"] = conf.get("spark.master", master or LOCAL)
    if found.get("spark.master", "").startswith("local"):
        cores = _cores(found["spark.master"])
        found |= _WHEN_LOCAL | {"spark.sql.shuffle.partitions": str(_SHUFFLED_PER_CORE * cores)}
    found |= conf
    if kafka and "spark-sql-kafka" not in found.get("spark.jars", ""):
        packages = [each for each in found.get("spark.jars.packages", "").split(",") if each]
        if not any("spark-sql-kafka" in each for each in packages):
            found["spark.jars.packages"] = ",".join([*packages, KAFKA_CONNECTOR])
    return found


def conf_from(flags: Sequence[str]) -> dict[str, str]:
    """Parse settings from the command line, each NAME=VALUE."""
    found = {}
    for each in flags:
        name, equals, value = each.partition("=")
        if not equals or not name.startswith("spark."):
            raise InvalidInput(
                f"--conf: {each!r} is not a setting of Spark: write it like spark.ui.enabled=true"
            )
        found[name] = value
    return found


def _cores(master: str) -> int:
    match = re.match(r"local\[(\d+)", master)
    if match:
        return int(match[1])
    return 1 if master == "local" else os.cpu_count() or 1


def _launch(settings: Mapping[str, str], log: Path | None, ending: ExitStack) -> None:
    """Start the JVM with its log in a file, and end it with the block."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    _need_java()
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    words = ending.enter_context(open(log, "ab") if log else tempfile.TemporaryFile())  # noqa: PTH123, SIM115
    began = words.tell() if log is None else log.stat().st_size
    # Executors use this Python, which has this package; a cluster with another path sets its own.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings["spark.master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        launch: Any = launch_gateway
        gateway = launch(conf, {"stdout": words, "stderr": words})
    except PySparkRuntimeError as error:
        raise NoSpark(f"Spark does not start. Its last words:\n{_last_words(words, log, began)}") from error
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001
    ending.callback(_end, gateway)


def _end(gateway: Any) -> None:
    """End the JVM by closing its standard input, and reset pyspark's state."""
    from pyspark import SparkContext

    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def _last_words(words: Any, log: Path | None, began: int) -> str:
    if log is None:
        words.seek(began)
        text = words.read()
    else:
        text = log.read_bytes()[began:]
    lines = text.decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    return "\n".join(f"  {line}" for line in lines) or "  (none)"


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise NoSpark(f"Spark needs Java 17 or newer, and {where}: install it, or set JAVA_HOME")


def _package(ending: ExitStack) -> str:
    """Return this package as a zip file that executors can import from."""
    folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="restow-")))
    source = Path(__file__).parents[1]
    archive = folder / "restow.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                package.write(path, Path("restow") / path.relative_to(source))
    return str(archive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A running stage."""

    number: int
    name: str
    tasks_done: int
    tasks: int
    rows: int
    """Rows read so far, from files and from other stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStatus:
    """Spark's progress at one moment."""

    stages: tuple[Stage, ...]
    stages_done: int
    rows_done: int
    """Rows read by finished stages."""

    @property
    def rows(self) -> int:
        return self.rows_done + sum(stage.rows for stage in self.stages)


class SparkProgress:
    """Reads the progress of one session since this object was made."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext._jsc  # noqa: SLF001  (the only way to the status of stages)
        self._store: Any = context.sc().statusStore()
        self._under_way: dict[int, Stage] = {}
        self._ended: dict[int, int] = {}

    def standing(self) -> SparkStatus:
        """Return the running stages. Stages that began and ended between two calls do not count."""
        now = {stage.number: stage for stage in self._active()}
        self._ended |= {
            number: self._under_way[number].rows for number in self._under_way.keys() - now.keys()
        }
        self._under_way = now
        return SparkStatus(
            stages=tuple(now.values()), stages_done=len(self._ended), rows_done=sum(self._ended.values())
        )

    def _active(self) -> Iterator[Stage]:
        listed = self._store.activeStages()
        for at in range(listed.size()):
            data = listed.apply(at)
            yield Stage(
                number=data.stageId(),
                name=data.name().partition(" at ")[0],
                tasks_done=data.numCompleteTasks(),
                tasks=data.numTasks(),
                rows=data.inputRecords() + data.shuffleReadRecords(),
            )
