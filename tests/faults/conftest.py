"""Where Java cannot be had, there is no ZooKeeper, and none of this can run."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.brokers import broker_processes
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.brokers import BrokerProcesses


@pytest.fixture
def start_brokers(tmp_path: Path) -> Iterator[Callable[..., BrokerProcesses]]:
    """Broker processes on a ZooKeeper of their own, which end with the test."""
    with ExitStack() as stack:

        def start(**options: Any) -> BrokerProcesses:
            with needs_kafka():
                return stack.enter_context(broker_processes(tmp_path, **options))

        yield start


@pytest.fixture(autouse=True)
def _say_nothing_of_lost_connections() -> Iterator[None]:
    """kafka-python logs each, and a log record that pytest keeps would keep the socket in it as well."""
    logger = logging.getLogger("kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)
