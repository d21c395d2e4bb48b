"""A new log's directory is made with its first file, in the background, or at the close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.cluster.log import LogConfig, LogManager, MetaProperties
from restow.cluster.log.errors import DiskFailure
from restow.model import TopicPartition
from restow.runtime.disk import SystemDisk
from tests.unit.log.making import batch_of

if TYPE_CHECKING:
    from pathlib import Path

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def started(path: Path) -> LogManager:
    logs = LogManager(
        SystemDisk(),
        [str(path)],
        MetaProperties("cluster", 1),
        config_of=lambda topic: LogConfig(),
        now_ms=lambda: 0,
        on_directory_failure=lambda path, lost: None,
    )
    logs.start()
    return logs


def folders(path: Path) -> dict[str, list[str]]:
    return {
        each.name: sorted(file.name for file in each.iterdir()) for each in path.iterdir() if each.is_dir()
    }


def test_directory_is_made_by_the_first_append(tmp_path: Path) -> None:
    logs = started(tmp_path)
    log = logs.get_or_create(T0, topic_id="id-of-t" * 3 + "-")
    logs.get_or_create(T1, topic_id="id-of-t" * 3 + "-")
    assert folders(tmp_path) == {}
    log.append_as_leader(batch_of(b"a"), 0, 0)
    assert folders(tmp_path) == {
        "t-0": ["00000000000000000000.log", "leader-epoch-checkpoint", "partition.metadata"]
    }
    logs.release()


def test_other_directories_are_made_in_the_background(tmp_path: Path) -> None:
    logs = started(tmp_path)
    logs.get_or_create(T0, topic_id="id-of-t" * 3 + "-")
    logs.get_or_create(T1)
    assert logs.next_due_ms == 0
    assert sum(1 for _ in logs.tend()) == 2
    assert folders(tmp_path) == {"t-0": ["partition.metadata"], "t-1": []}
    assert logs.next_due_ms is None
    logs.release()


def test_close_makes_all_directories(tmp_path: Path) -> None:
    logs = started(tmp_path)
    logs.get_or_create(T0, topic_id="id-of-t" * 3 + "-")
    logs.close()
    again = started(tmp_path)
    assert again.partitions == (T0,)
    assert again.directories[0].topic_ids == {T0: "id-of-t" * 3 + "-"}
    again.release()


def test_log_that_starts_at_an_offset_has_a_directory(tmp_path: Path) -> None:
    logs = started(tmp_path)
    logs.get_or_create(T0).truncate_fully_and_start_at(7)
    assert folders(tmp_path) == {"t-0": ["00000000000000000007.log"]}
    logs.release()


def test_log_deleted_before_its_directory_is_made_leaves_nothing(tmp_path: Path) -> None:
    logs = started(tmp_path)
    logs.get_or_create(T0, topic_id="before")
    logs.delete(T0)
    assert logs.next_due_ms is None
    logs.get_or_create(T0, topic_id="after").append_as_leader(batch_of(b"a"), 0, 0)
    assert "after" in (tmp_path / "t-0" / "partition.metadata").read_text()
    logs.release()


def test_failure_to_make_a_directory_takes_the_log_dir_offline(tmp_path: Path) -> None:
    logs = started(tmp_path)
    (tmp_path / "t-0").write_text("in the way")
    log = logs.get_or_create(T0)
    with pytest.raises(DiskFailure):
        log.append_as_leader(batch_of(b"a"), 0, 0)
    assert logs.offline == (str(tmp_path),)
    assert logs.next_due_ms is None
