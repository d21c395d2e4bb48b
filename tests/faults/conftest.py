"""Where Java cannot be had, there is no ZooKeeper, and none of this can run."""

from __future__ import annotations

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
