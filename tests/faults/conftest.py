"""Broker processes on a ZooKeeper. Only where Java or the jars cannot be had are these tests skipped."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.brokers import broker_processes
from harness.jars import kafka_jars
from harness.java import java
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.brokers import BrokerProcesses


@pytest.fixture
def start_brokers(tmp_path: Path) -> Iterator[Callable[..., BrokerProcesses]]:
    """Broker processes on a ZooKeeper of their own, which end with the test.

    A broker that does not come up is a failure. One that has to be begun again is a failure, too, unless the
    test says that it does harm (`harms`), because then its session may be over when it comes back.
    """
    steady: list[BrokerProcesses] = []
    with ExitStack() as stack:

        def start(*, harms: bool, **options: Any) -> BrokerProcesses:
            with needs_kafka():
                java()
                kafka_jars()
            brokers = stack.enter_context(broker_processes(tmp_path, **options))
            if not harms:
                steady.append(brokers)
            return brokers

        yield start
    for brokers in steady:
        assert not brokers.unasked_restarts, f"begun again though nobody harmed them: {tmp_path}"


@pytest.fixture(autouse=True)
def _say_nothing_of_lost_connections() -> Iterator[None]:
    """kafka-python logs each, and a log record that pytest keeps would keep the socket in it as well."""
    logger = logging.getLogger("kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)
