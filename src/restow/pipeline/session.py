"""A Spark session for a command: the same code on a laptop and on a cluster.

    with session("collect", master="local[*]") as spark:
        spark.read.format("restow.replicas")…

With a `local` master the session uses only the loopback interface, has no web page and takes little memory,
unless settings say otherwise. To any other master it ships this package; the dependencies must be installed
there. Under spark-submit it uses the submitted session. With `sc://host:port` it is one of a Spark Connect
server, without a JVM here. Spark's log goes to a file, not to the terminal. An interrupted block ends at
once, without another call to the JVM.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput
from restow.pipeline.address import DELTA, ICEBERG, lake_address
from restow.pipeline.checkpoints import local_path
from restow.pipeline.class_archive import ClassArchive
from restow.pipeline.connect import SCHEME, connected
from restow.pipeline.jars import KAFKA, NoSpark, find_java, jars_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from pyspark.sql import SparkSession


LOCAL = "local[*]"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_SERVER_TAKES = {
    # Samples and days are in UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # JAAS puts the password in a property whose name does not say so.
    "spark.sql.redaction.options.regex": "(?i)url|jaas|password|keystore.key",
}
_ALWAYS = _SERVER_TAKES | {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # Otherwise each column and each operation asks the JVM three times more, for messages that show our code.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The variable by which pyspark knows that its functions make columns for a server."""
_WHEN_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    # Spark would list each of hundreds of files in a task of its own.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}
_WHEN_SMALL = {
    # To compile a query takes longer than to run it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # So does to plan it anew after each stage.
    "spark.sql.adaptive.enabled": "false",
    _JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_FIRST_JAR = {KAFKA: "spark-sql-kafka", ICEBERG: "iceberg-spark-runtime", DELTA: "delta-spark"}
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_WITH_DELTA = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
_WITH_DELTA_WHEN_LOCAL = {
    # Delta's own default is for clusters: 50 tasks for each look at a log.
    "spark.databricks.delta.snapshotPartitions": "2",
}
SMALL_BYTES = 8 << 20
"""Up to this size a lake is small."""
_SHUFFLED_PER_CORE = 8
TASKS = "spark.restow.tasks"
"""Our own setting: into how many tasks jobs spread work that has nothing to do with the size of tables."""
_LAST_LINES = 12
_STOP_TIMEOUT_S, _RECORD_TIMEOUT_S = 20, 120
_RECORDS = "pipeline "
"""Commands that need most of the classes that any needs."""


@contextmanager
def session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    kafka: bool = False,
    log: Path | None = None,
    lakes: Sequence[str] = (),
    quick: bool = False,
) -> Iterator[SparkSession]:
    """Start a session for this block.

    `lakes` are those that it will read and write: their kinds need jars. `quick` says that it reads nothing
    else; then it has none of Restow's sources, and small lakes get other settings than large ones. `kafka`
    adds Spark's Kafka connector. `log` keeps Spark's log; without it the log is discarded, and an error shows
    its last lines if Spark does not start.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise NoSpark(f"Spark is not installed ({error}): pip install 'restow[spark]'") from error
    if (master or "").startswith(SCHEME):
        with ExitStack() as ending:
            spark = _on_a_server(master or "", conf or {}, ending)
            _register(spark)
            yield spark
        return
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if SparkSession.getActiveSession() is not None:
        raise NoSpark("there is a Spark session in this process already: end it first")
    small = quick and all(map(is_small, lakes))
    settings = settings_for(name, master, conf or {}, submitted=submitted, small=small)
    if kafka:
        settings = with_jars(settings, KAFKA)
    for lake in lakes:
        settings = with_lake(settings, lake)
    with ExitStack() as ending:
        _hush_py4j(ending)
        if not submitted:
            with _undisturbed():
                _launch(settings, log, ending, record=name.startswith(_RECORDS))
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
        if not quick:
            _register(spark)
        yield spark


def _register(spark: SparkSession) -> None:
    from restow.pipeline.sources import register  # with the client of Kafka, which takes a while

    register(spark)


def _on_a_server(url: str, conf: Mapping[str, str], ending: ExitStack) -> SparkSession:
    """Return a session of a Spark Connect server, and send this package there."""
    before = os.environ.get(_CONNECT_MODE)
    spark = connected(url, {**_SERVER_TAKES, **conf})
    if before is None:
        ending.callback(os.environ.pop, _CONNECT_MODE, None)
    ending.callback(spark.stop)
    spark.addArtifacts(_package(ending), pyfile=True)
    return spark


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


def is_small(lake: str) -> bool:
    """Return whether this lake is a folder here with few bytes."""
    address = lake_address(lake)
    path = None if address.kind == ICEBERG else local_path(address.place)
    if path is None:
        return False
    left = SMALL_BYTES
    for file in Path(path).rglob("*.parquet"):
        try:
            left -= file.stat().st_size
        except FileNotFoundError:  # compaction has removed it
            continue
        if left < 0:
            return False
    return True


def settings_for(
    name: str,
    master: str | None,
    conf: Mapping[str, str],
    *,
    submitted: bool = False,
    small: bool = False,
) -> dict[str, str]:
    """Return our settings, overridden by the given ones."""
    found = {"spark.app.name": f"restow {name}", **_ALWAYS}
    if not submitted or master is not None:
        found["spark.master"] = conf.get("spark.master", master or LOCAL)
    if found.get("spark.master", "").startswith("local"):
        cores = _cores(found["spark.master"])
        many = str(_SHUFFLED_PER_CORE * cores)
        found |= _WHEN_LOCAL | {"spark.sql.shuffle.partitions": many, TASKS: many}
        if small:
            found |= _WHEN_SMALL | {"spark.sql.shuffle.partitions": str(cores)}
    return {**found, **conf}


def with_jars(settings: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the settings with the jars of this kind, unless they name its first one."""
    jars = settings.get("spark.jars", "")
    if _FIRST_JAR[kind] in jars + settings.get("spark.jars.packages", ""):
        return dict(settings)
    whole = [*filter(None, jars.split(",")), *map(str, jars_of(kind))]
    return {**settings, "spark.jars": ",".join(dict.fromkeys(whole))}


def with_lake(settings: Mapping[str, str], lake: str) -> dict[str, str]:
    """Return the settings with what a session needs for this kind of lake, unless they say otherwise."""
    address = lake_address(lake)
    if address.kind == ICEBERG:
        # A table must not look as it did before others wrote to it.
        uncached = {f"spark.sql.catalog.{address.catalog}.cache-enabled": "false"}
        return uncached | with_jars(settings, ICEBERG)
    if address.kind == DELTA:
        found = _WITH_DELTA | with_jars(settings, DELTA)
        if settings.get("spark.master", "").startswith("local"):
            found = _WITH_DELTA_WHEN_LOCAL | found
        given = found.get("spark.sql.extensions", "")
        if _DELTA_EXTENSION not in given:
            found["spark.sql.extensions"] = ",".join(filter(None, [given, _DELTA_EXTENSION]))
        return found
    return dict(settings)


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


def _launch(settings: Mapping[str, str], log: Path | None, ending: ExitStack, *, record: bool) -> None:
    """Start the JVM with its log in a file, and end it with the block."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    classes = ClassArchive(find_java())
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(_with_classes(settings, classes, record=record).items()))
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
    ending.push(partial(_end, gateway, classes))


def _with_classes(settings: Mapping[str, str], classes: ClassArchive, *, record: bool) -> dict[str, str]:
    """Return the settings with the archive of classes, unless they name one or Java runs elsewhere."""
    given = settings.get(_JAVA_OPTIONS, "")
    if not settings["spark.master"].startswith("local") or "Archive" in given:
        return dict(settings)
    return {**settings, _JAVA_OPTIONS: f"{given} {classes.option(record=record)}".strip()}


def _end(gateway: Any, classes: ClassArchive, kind: type[BaseException] | None, *_: object) -> None:
    """End the JVM by closing its standard input, and reset pyspark's state."""
    from pyspark import SparkContext

    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    gateway.proc.stdin.close()
    if classes.recording and _is_interrupt(kind):
        gateway.proc.kill()
    try:
        gateway.proc.wait(_RECORD_TIMEOUT_S if classes.recording else _STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    classes.recorded(whole=gateway.proc.returncode == 0)


def _last_words(words: Any, log: Path | None, began: int) -> str:
    if log is None:
        words.seek(began)
        text = words.read()
    else:
        text = log.read_bytes()[began:]
    lines = text.decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    return "\n".join(f"  {line}" for line in lines) or "  (none)"


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
