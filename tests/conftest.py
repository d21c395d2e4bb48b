"""What the folders of tests share: the JVM with Apache Kafka's classes, and when to skip for want of it."""

from __future__ import annotations

import os
import warnings
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import hypothesis
import pytest

from harness.jars import kafka_jars
from harness.java import Missing
from harness.jvm import kafka_jvm
from harness.oracle import Oracle
from tests.seeds import AGAIN, SEED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

# However busy the machine is, no example is too slow.
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
    """Say where random cases come from."""
    return f"random cases: {AGAIN}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it again below failures, where whoever reads of them looks."""
    if SEED and (terminalreporter.stats.get("failed") or terminalreporter.stats.get("error")):
        terminalreporter.write_line(f"random cases: {AGAIN}", red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis draw by our seed, and forgive kafka-python its warnings; the others are errors.

    It reads its own message definitions in a way that Python 3.11 and 3.12 deprecate, and leaves sockets
    whose connection was refused to the garbage collector, which meets them in any later test, or between two,
    where the filters hold that were known before this.
    """
    if SEED and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    for function in ("read_text", "open_text"):
        config.addinivalue_line("filterwarnings", f"ignore:{function} is deprecated:DeprecationWarning")
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)


@contextmanager
def needs_kafka() -> Iterator[None]:
    """Skip with the reason where Java or a download cannot be had; on CI fail.

    Anything else that goes wrong as things start is a failure everywhere, above all a crash of our own.
    """
    try:
        yield
    except Missing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def jars() -> Path:
    """The folder with Apache Kafka's jars."""
    with needs_kafka():
        return kafka_jars()


@pytest.fixture(scope="session")
def gateway(jars: Path) -> Iterator[JavaGateway]:
    """The way into the session's one JVM, which has Apache Kafka's classes."""
    with ExitStack() as stack:
        with needs_kafka():
            gateway = stack.enter_context(kafka_jvm())
        yield gateway


@pytest.fixture(scope="session")
def kafka(gateway: JavaGateway) -> Oracle:
    """What Apache Kafka's own classes answer."""
    return Oracle(gateway)
