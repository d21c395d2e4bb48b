"""Replicas of one partition differ in size on Apache Kafka 4.3.1: the disks hold what the plan foretold."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from tests.clients.sizes_on_brokers import OFTEN_TENDED, move_and_look
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

SEGMENT, SIZE, SLOWLY = 1 << 20, 36_000_000, 1_000_000
"""Brokers let through ten seconds' worth before they begin to throttle."""


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets to it, and its log keeps them open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.mark.full
def test_disks_hold_what_was_foretold_at_every_moment_on_the_latest_kafka(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(
                apache_kafka(tmp_path / "kafka", nodes=4, version=KAFKA_4, settings=OFTEN_TENDED, heap="256m")
            )
        asyncio.run(
            move_and_look(cluster.bootstrap, tmp_path, (1, 2, 3, 4), size=SIZE, segment=SEGMENT, rate=SLOWLY)
        )
