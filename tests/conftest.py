"""What the folders of tests share: the JVM with Apache Kafka's classes, and when to skip for want of it."""

from __future__ import annotations

import os
import warnings
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import hypothesis
import pytest

from harness.jars import kafka_jars
from harness.java import HarnessError
from harness.jvm import kafka_jvm
from harness.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

# However busy the machine is, no example is too slow. And what is drawn is the same in every run, as it is
# where cases are made by hand: a failure can be seen again, and comes with a change and not by chance.
hypothesis.settings.register_profile(
    "unhurried",
    hypothesis.settings.default,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    """What kafka-python may be forgiven: the rest of the warnings are errors.

    It reads its own message definitions in a way that Python 3.11 and 3.12 deprecate, and leaves sockets
    whose connection was refused to the garbage collector, which meets them in any later test, or between two,
    where the filters hold that were known before this.
    """
    for function in ("read_text", "open_text"):
        config.addinivalue_line("filterwarnings", f"ignore:{function} is deprecated:DeprecationWarning")
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)


@contextmanager
def needs_kafka() -> Iterator[None]:
    """Where Java or the jars cannot be had: a failure on CI, a skip with the reason elsewhere."""
    try:
        yield
    except HarnessError as error:
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
