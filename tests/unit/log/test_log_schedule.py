"""When logs are looked after: again and again while they are written to, and when their settings change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.unit.log.making import SMALL, batch_of
from tests.unit.log.test_log_manager import T0, Broker

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.log import PartitionLog

WEEK_MS = 7 * 24 * 3600 * 1000
DELETE = replace(SMALL, segment_bytes=200, cleanup_delete=True, retention_ms=WEEK_MS)


def fill(broker: Broker, log: PartitionLog) -> None:
    for _ in range(20):
        log.append_as_leader(batch_of(b"x" * 60, time=broker.now), 0, 0)
    log.high_watermark = log.end_offset


def later(broker: Broker, ms: int = 1001) -> None:
    broker.now += ms
    broker.tend()


def test_a_log_may_grow_to_its_limit_and_no_further_however_often(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(DELETE, retention_bytes=500)).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for _ in range(5):
        fill(broker, log)
        later(broker)
        assert log.size_bytes < 1000


def test_every_append_is_flushed_in_its_time(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(DELETE, flush_ms=100)).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for _ in range(3):
        fill(broker, log)
        assert log.recovery_point < log.end_offset
        later(broker, 101)
        assert log.recovery_point == log.end_offset


def test_a_shorter_retention_is_kept_by_a_log_that_nobody_writes_to(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=DELETE).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    fill(broker, log)
    later(broker)
    broker.config = replace(DELETE, retention_ms=10_000)
    broker.logs.reconfigure("t")
    later(broker)
    assert log.start_offset == 0
    later(broker, 10_000)
    assert log.start_offset == log.end_offset


def test_what_is_due_does_not_pile_up(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=DELETE).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for _ in range(20):
        fill(broker, log)
        later(broker)
    assert len(broker.logs._due) <= 2
