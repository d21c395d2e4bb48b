"""Scheduling of log maintenance: during writes, and after changes of settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.log.config import FOREVER
from tests.unit.log.making import SMALL, batch_of, keyed, read_all
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


def test_retention_bytes_holds_over_many_appends(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(DELETE, retention_bytes=500)).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for _ in range(5):
        fill(broker, log)
        later(broker)
        assert log.size_bytes < 1000


def test_every_append_is_flushed_within_flush_ms(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(DELETE, flush_ms=100)).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for _ in range(3):
        fill(broker, log)
        assert log.recovery_point < log.end_offset
        later(broker, 101)
        assert log.recovery_point == log.end_offset


def test_shorter_retention_applies_to_idle_log(tmp_path: Path) -> None:
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


def test_schedule_does_not_grow_with_appends(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=DELETE).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for _ in range(20):
        fill(broker, log)
        later(broker)
    assert len(broker.logs._due) <= 2


COMPACT = replace(
    SMALL, segment_bytes=200, cleanup_delete=False, cleanup_compact=True, min_cleanable_dirty_ratio=0.5
)
KAFKAS_BACKOFF_MS = 15_000


def write_keys(broker: Broker, log: PartitionLog, count: int = 20) -> None:
    for number in range(count):
        log.append_as_leader(keyed(("k", f"{number}" * 20), time=broker.now), 0, 0)
    log.high_watermark = log.end_offset


def records_in(log: PartitionLog) -> int:
    return len(read_all(log))


def test_dirty_log_is_compacted_after_the_default_backoff(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=COMPACT, check_interval_ms=300_000).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    write_keys(broker, log)
    later(broker, KAFKAS_BACKOFF_MS - 1)
    assert records_in(log) == 20
    later(broker, 1)
    assert records_in(log) < 20


def test_log_is_compacted_after_the_configured_backoff(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=COMPACT, check_interval_ms=300_000, cleaner_backoff_ms=lambda: 50)
    log = broker.started().logs.get_or_create(T0, is_new=True)
    write_keys(broker, log)
    later(broker, 50)
    assert records_in(log) < 20


def test_slightly_dirty_log_is_compacted_after_max_compaction_lag(tmp_path: Path) -> None:
    config = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=3_600_000)
    broker = Broker(tmp_path, config=config, check_interval_ms=300_000).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    write_keys(broker, log)
    later(broker, 1_800_000)
    assert records_in(log) == 20
    later(broker, 1_800_001)
    assert records_in(log) < 20


def test_slightly_dirty_log_is_never_compacted_without_max_compaction_lag(tmp_path: Path) -> None:
    config = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=FOREVER)
    broker = Broker(tmp_path, config=config, check_interval_ms=300_000).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    write_keys(broker, log)
    for _ in range(5):
        later(broker, WEEK_MS)
    assert records_in(log) == 20
    assert broker.logs.next_due_ms is None


def test_young_records_are_compacted_after_min_compaction_lag(tmp_path: Path) -> None:
    """No append reminds the broker of them."""
    config = replace(COMPACT, min_compaction_lag_ms=100_000)
    broker = Broker(tmp_path, config=config, check_interval_ms=300_000).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    write_keys(broker, log)
    later(broker, 99_999)
    assert records_in(log) == 20
    later(broker, KAFKAS_BACKOFF_MS)
    assert records_in(log) < 20


def test_segment_rolls_when_its_first_record_reaches_max_compaction_lag(tmp_path: Path) -> None:
    config = replace(COMPACT, segment_bytes=1 << 20, max_compaction_lag_ms=100)
    broker = Broker(tmp_path, config=config).started()
    log = broker.logs.get_or_create(T0, is_new=True)
    for time in (1000, 1100, 1101):
        log.append_as_leader(keyed(("k", "v"), time=time), 0, 0)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    log.config = replace(config, cleanup_compact=False)
    log.append_as_leader(keyed(("k", "v"), time=9000), 0, 0)
    assert len(log.segments) == 2
