"""A run on Apache Kafka 4.3.1 shows what happened there."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from tests.clients.true_numbers import move_between_brokers, move_between_log_dirs
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

SIZE, SLOWLY = 24_000_000, 1_000_000
"""Brokers let through ten seconds' worth before they begin to throttle."""


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets to it, and its log keeps them open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.mark.full
def test_numbers_of_a_run_are_true_on_the_latest_kafka(tmp_path: Path) -> None:
    """Between brokers, and between the log dirs of one: the same cluster for both."""
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(
                apache_kafka(tmp_path / "kafka", nodes=3, version=KAFKA_4, log_dirs=2)
            )
        for name, check in (("brokers", move_between_brokers), ("dirs", move_between_log_dirs)):
            asyncio.run(check(cluster.bootstrap, tmp_path / name, (1, 2, 3), size=SIZE, rate=SLOWLY))
