"""Fixtures that all tests share: JVMs with Apache Kafka's classes and with Spark, and skips without them."""

from __future__ import annotations

import gc
import os
import warnings
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from harness.jars import kafka_jars
from harness.java import Missing
from harness.jvm import kafka_jvm
from harness.oracle import Oracle
from harness.spark import spark_session
from harness.spark_connect import connect_session
from tests.often import IS_FULL
from tests.seeds import AGAIN, SEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent

# For a few rows, compiling a query takes longer than running it, and so does planning it anew after each
# stage. Commands choose the same for small lakes. `make test-full` runs Spark as users of large ones do.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}

ON_CONNECT = os.environ.get("RESTOW_SPARK") == "connect"
"""Whether the tests of Spark use a Connect server. Then those marked `classic` are left out."""

# Long files first, so that no process waits for another at the end.
ORDER = ("spark", "faults", "apache", "browser", "clients", "sim", "conformance", "unit", "oracle", "tidy")

WITHOUT_SESSION = ("test_spark_elsewhere.py", "test_spark_interrupts.py")
"""Files of `spark` that start Spark in processes of their own alone."""

# A busy machine must not fail an example for slowness.
hypothesis.settings.register_profile(
    "unhurried",
    hypothesis.settings.default,
    deadline=None,
    derandomize=not SEED,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("unhurried")


def pytest_report_header() -> str:
    """Print the seed of random cases."""
    return f"random cases: {AGAIN}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed again below failures."""
    if SEED and (terminalreporter.stats.get("failed") or terminalreporter.stats.get("error")):
        terminalreporter.write_line(f"random cases: {AGAIN}", red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Seed Hypothesis, and ignore kafka-python's warnings; all others are errors.

    It reads its message definitions in a way that Python 3.11 and 3.12 deprecate. It leaves sockets whose
    connection was refused, or did not get through TLS, to the garbage collector, which warns during any later
    test or between two tests, where only the filters set here hold.
    """
    if SEED and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    for function in ("read_text", "open_text"):
        config.addinivalue_line("filterwarnings", f"ignore:{function} is deprecated:DeprecationWarning")
    config.addinivalue_line("filterwarnings", "ignore:unclosed <s:ResourceWarning")
    warnings.filterwarnings("ignore", "unclosed <s", ResourceWarning)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests by folder; tests elsewhere come first. In `spark` the two sessions come first."""
    if ON_CONNECT:
        left_out = [item for item in items if item.get_closest_marker("classic")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    place = {HERE / folder: number for number, folder in enumerate(ORDER)}
    items.sort(
        key=lambda item: (
            max(place.get(folder, -1) for folder in item.path.parents),
            item.path.name in WITHOUT_SESSION,
        )
    )


def pytest_collection_finish() -> None:
    """Exclude what is loaded by now from garbage collection, which many tests ask for."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let them go as the process ends; libraries complain of objects that are left."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Keep a file of tests in one process.

    Files that use Spark are kept in two, each with one session: those with Spark in their names, and the
    others of its folder.
    """
    from xdist.scheduler import LoadFileScheduling

    class TwoSessions(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            folder, _, name = file.rpartition("/")
            if "spark" not in file or name in WITHOUT_SESSION:
                return file
            return "files with spark in their names" if "spark" in name else folder

    return TwoSessions(config, log) if config.option.dist == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def built_once() -> Iterator[None]:
    """Build the tree of all commands once: Typer does for each call, which takes longer than most of them."""
    import typer.main
    import typer.testing

    built = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.main, "get_command", built)
        patched.setattr(typer.testing, "_get_command", built)
        yield


@contextmanager
def needs_kafka() -> Iterator[None]:
    """Skip with the reason if Java or a download is missing; fail on CI.

    Any other error at the start is a failure everywhere.
    """
    try:
        yield
    except Missing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def jars() -> Path:
    """Return the folder with Apache Kafka's jars."""
    with needs_kafka():
        return kafka_jars()


@pytest.fixture(scope="session")
def gateway(jars: Path) -> Iterator[JavaGateway]:
    """Start the session's JVM with Apache Kafka's classes, and return its gateway."""
    with ExitStack() as stack:
        with needs_kafka():
            gateway = stack.enter_context(kafka_jvm())
        yield gateway


@pytest.fixture(scope="session")
def kafka(gateway: JavaGateway) -> Oracle:
    """Return functions that call Apache Kafka's classes."""
    return Oracle(gateway)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark in local mode on two cores, with Restow's sources, once for all tests of this process.

    A process can have only one session, and Spark is quicker the longer it has run. With RESTOW_SPARK=connect
    it is a session of a Connect server.
    """
    from restow.pipeline.lake import SETTINGS
    from restow.pipeline.sources import register

    made = connect_session if ON_CONNECT else spark_session
    with ExitStack() as stack:
        with needs_kafka():
            session = stack.enter_context(made(tmp_path_factory.mktemp("spark")))
        for name, value in (SETTINGS if IS_FULL else SETTINGS | INTERPRETED).items():
            session.conf.set(name, value)
        register(session)
        yield session
