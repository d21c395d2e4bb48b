"""Requested log dirs of logs that are never created do not accumulate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.model import TopicPartition
from tests.unit.log.test_log_manager import Broker

if TYPE_CHECKING:
    from pathlib import Path


def test_oldest_requested_log_dir_is_forgotten_beyond_the_limit(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=2).started()
    wanted = broker.paths[1]
    for number in range(10_001):
        broker.logs.prefer(TopicPartition("t", number), wanted)
    broker.logs.prefer(TopicPartition("t", 1), wanted)
    assert len(broker.logs._preferred) == 10_000
    forgotten = broker.logs.get_or_create(TopicPartition("t", 0), is_new=True)
    kept = broker.logs.get_or_create(TopicPartition("t", 1), is_new=True)
    assert forgotten.directory.startswith(broker.paths[0])
    assert kept.directory.startswith(wanted)
    broker.logs.release()
