"""Broker processes on a ZooKeeper. These tests are skipped only without Java or the jars."""

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
    """Start broker processes on their own ZooKeeper, which end with the test.

    A broker that does not come up fails the test. So does one that had to be restarted, unless the test
    causes faults (`harms`), because then its session may have expired.
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
    """Silence kafka-python's log of lost connections, because pytest would keep their sockets."""
    logger = logging.getLogger("kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)
