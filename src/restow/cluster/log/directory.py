"""One log dir of a broker: a directory per partition, and the checkpoints that go with them.

topic-0/                     a partition
topic-0.<number>-future/     a copy that will replace the one in another log dir
topic-0.<number>-delete/     a deleted partition, removed later
topic-0.<number>-stray/      likewise, because no topic assigns it to this broker
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.log.checkpoint import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    decode_meta,
    decode_offsets,
    decode_topic_id,
    encode_meta,
    encode_offsets,
    encode_topic_id,
)
from restow.cluster.log.errors import InvalidCheckpoint, LogDirInUse
from restow.cluster.log.guard import GuardedDisk
from restow.cluster.log.log import PartitionLog
from restow.model import TopicPartition
from restow.wire.batches import CorruptBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.log.checkpoint import MetaProperties
    from restow.cluster.log.config import LogConfig
    from restow.cluster.log.errors import DiskFailure
    from restow.runtime.disk import Disk, Lock

_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_MARKED = re.compile(r"(?P<name>.+)\.(?P<number>[0-9a-f]+)-(?P<mark>delete|stray|future)")
_LONGEST_NAME = 255
_SYNC_EACH = 8
"""Up to this many logs are synced one by one; for more, the whole disk is synced."""


class LogDirectory:
    """A path on one disk. When the disk fails, everything in it is offline."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        *,
        on_failure: Callable[[LogDirectory, DiskFailure], None],
        on_append: Callable[[PartitionLog], None],
    ) -> None:
        self.path = path
        self.disk = GuardedDisk(disk, path, lambda failure: on_failure(self, failure))
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.futures: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, str] = {}
        self.first_dirty: dict[TopicPartition, int] = {}
        """By partition, the start of the uncompacted part."""
        self.doomed: list[str] = []
        """Paths to remove."""
        self._on_append = on_append
        self._written: dict[str, bytes] = {}
        self._lock: Lock | None = None

    @property
    def is_online(self) -> bool:
        """Return whether the disk has worked so far."""
        return self.disk.failure is None

    def load(self, meta: MetaProperties, config_of: Callable[[str], LogConfig]) -> None:
        """Claim the directory and load its logs."""
        self.disk.make_directory(self.path)
        self._lock = self.disk.lock(f"{self.path}/{LOCK}")
        if self._lock is None:
            raise LogDirInUse(
                f"the log dir {self.path} is in use by another broker: stop that one, or give each its own"
            )
        self._claim(meta)
        marker = f"{self.path}/{CLEAN_SHUTDOWN}"
        clean = self.disk.exists(marker)
        if clean:
            self.disk.remove(marker)
        watermarks = self._read_offsets(HIGH_WATERMARKS)
        recovery_points = self._read_offsets(RECOVERY_POINTS)
        starts = self._read_offsets(LOG_STARTS)
        self.first_dirty = self._read_offsets(CLEANER_OFFSETS)
        for name in self.disk.list(self.path):
            marked = _MARKED.fullmatch(name)
            partition = _partition_of(marked["name"] if marked else name)
            if marked is not None and (marked["mark"] != "future" or partition in self.futures):
                self.doomed.append(f"{self.path}/{name}")
                continue
            if partition is None:
                continue
            if marked:
                # An unfinished copy has no checkpoint, so after a crash all of it is checked.
                self._read_topic_id(partition, f"{self.path}/{name}")
                checked_from = None if clean else 0
                config = config_of(partition.topic)
                self.futures[partition] = self._open(name, partition, config, recovery_point=checked_from)
                continue
            log = self._open(
                name,
                partition,
                config_of(partition.topic),
                recovery_point=None if clean else recovery_points.get(partition, 0),
                start_offset=starts.get(partition, 0),
                high_watermark=watermarks.get(partition, 0),
            )
            self.logs[partition] = log
            self._read_topic_id(partition, log.directory)

    def create(self, partition: TopicPartition, config: LogConfig, topic_id: str | None) -> PartitionLog:
        """Create an empty log. Its directory, the slow part, is made a little later."""
        log = self.logs[partition] = self._open(str(partition), partition, config, fresh=True)
        if topic_id is not None:
            self.topic_ids[partition] = topic_id
        self.disk.late[log.directory] = partial(self._write_topic_id, partition)
        return log

    def create_future(
        self, partition: TopicPartition, config: LogConfig, topic_id: str | None = None
    ) -> PartitionLog:
        """Create an empty log that will replace the one in another directory."""
        name = future_name(partition)
        self.disk.make_directory(f"{self.path}/{name}")
        log = self.futures[partition] = self._open(name, partition, config, fresh=True)
        if topic_id is not None:
            self.set_topic_id(partition, topic_id)
        return log

    def promote(self, partition: TopicPartition) -> PartitionLog:
        """Make the future log the current one; the caller must doom the other directory's at once."""
        future = self.futures[partition]
        future.close(durable=False)
        self.disk.rename(future.directory, f"{self.path}/{partition}")
        log = self._open(
            str(partition),
            partition,
            future.config,
            start_offset=future.start_offset,
            high_watermark=future.high_watermark,
        )
        log.recovery_point = future.recovery_point
        log.adopt(future)
        del self.futures[partition]
        self.logs[partition] = log
        return log

    def doom(self, partition: TopicPartition, *, future: bool = False, mark: str = "delete") -> None:
        """Take a log out of use and rename its directory for removal."""
        log = (self.futures if future else self.logs)[partition]
        log.release()
        if self.disk.late.pop(log.directory, None) is None:
            path = f"{self.path}/{self._free_name(partition, mark)}"
            self.disk.rename(log.directory, path)
            self.doomed.append(path)
        del (self.futures if future else self.logs)[partition]
        self.topic_ids.pop(partition, None)
        self.first_dirty.pop(partition, None)

    @property
    def has_chores(self) -> bool:
        """Return whether there are directories to make or to remove in the background."""
        return bool(self.disk.late or self.doomed)

    def do_a_chore(self) -> None:
        """Make the directory of one new log, or remove a doomed one."""
        if self.disk.late:
            self.disk.make_late(next(iter(self.disk.late)))
        else:
            self.disk.remove_tree(self.doomed[0])
            del self.doomed[0]

    def set_topic_id(self, partition: TopicPartition, topic_id: str) -> None:
        """Store the topic id, in case another topic gets the same name."""
        self.topic_ids[partition] = topic_id
        self._write_topic_id(partition)

    def _write_topic_id(self, partition: TopicPartition) -> None:
        topic_id = self.topic_ids.get(partition)
        if topic_id is not None:
            log = self.logs.get(partition) or self.futures[partition]
            path = f"{log.directory}/{PARTITION_METADATA}"
            self.disk.write_atomically(path, encode_topic_id(topic_id), durable=False)

    def checkpoint(self, *, durable: bool = False) -> None:
        """Write the changed checkpoints."""
        logs = self.logs
        offsets = {
            HIGH_WATERMARKS: {partition: log.high_watermark for partition, log in logs.items()},
            RECOVERY_POINTS: {partition: log.recovery_point for partition, log in logs.items()},
            LOG_STARTS: {
                partition: log.start_offset
                for partition, log in logs.items()
                if log.start_offset > log.segments[0].base_offset
            },
            CLEANER_OFFSETS: self.first_dirty,
        }
        for name, entries in offsets.items():
            data = encode_offsets(entries)
            if durable or self._written.get(name) != data:
                self.disk.write_atomically(f"{self.path}/{name}", data, durable=durable)
                self._written[name] = data

    def close(self) -> None:
        """Close all logs and leave the clean-shutdown marker."""
        for path in tuple(self.disk.late):
            self.disk.make_late(path)
        logs = (*self.logs.values(), *self.futures.values())
        if sum(log.recovery_point < log.end_offset for log in logs) > _SYNC_EACH:
            self.disk.sync_all()
            for log in logs:
                log.was_synced()
        for log in logs:
            log.close()
        self.checkpoint(durable=True)
        self.disk.write_atomically(f"{self.path}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":-1}')
        self._unlock()

    def release(self) -> None:
        """Close all files without writing, after a disk failure or for a kill."""
        for log in (*self.logs.values(), *self.futures.values()):
            log.release()
        self.disk.late.clear()
        self.logs.clear()
        self.futures.clear()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _open(
        self,
        name: str,
        partition: TopicPartition,
        config: LogConfig,
        *,
        fresh: bool = False,
        recovery_point: int | None = None,
        start_offset: int = 0,
        high_watermark: int = 0,
    ) -> PartitionLog:
        """Open a log. A damaged one is checked from its start, and cut off at the damage."""
        for since in (recovery_point, 0):
            try:
                return PartitionLog(
                    self.disk,
                    f"{self.path}/{name}",
                    partition,
                    config,
                    fresh=fresh,
                    recovery_point=since,
                    start_offset=start_offset,
                    high_watermark=high_watermark,
                    on_append=self._on_append,
                )
            except CorruptBatch:
                if since == 0:
                    raise
        raise AssertionError("the second try has returned or raised")

    def _claim(self, meta: MetaProperties) -> None:
        path = f"{self.path}/{META_PROPERTIES}"
        if not self.disk.exists(path):
            self.disk.write_atomically(path, encode_meta(meta))
            return
        found = decode_meta(self.disk.read_bytes(path))
        if found != meta:
            raise InvalidCheckpoint(
                f"{path} says the log dir belongs to broker {found.broker_id} of cluster {found.cluster_id}, "
                f"not to broker {meta.broker_id} of cluster {meta.cluster_id}: give each broker its own"
            )

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """Read a checkpoint. A missing or damaged one is empty, and the logs are checked instead."""
        path = f"{self.path}/{name}"
        try:
            return decode_offsets(self.disk.read_bytes(path)) if self.disk.exists(path) else {}
        except InvalidCheckpoint:
            return {}

    def _read_topic_id(self, partition: TopicPartition, directory: str) -> None:
        path = f"{directory}/{PARTITION_METADATA}"
        try:
            if self.disk.exists(path):
                self.topic_ids[partition] = decode_topic_id(self.disk.read_bytes(path))
        except InvalidCheckpoint:
            return

    def _free_name(self, partition: TopicPartition, mark: str) -> str:
        """Return an unused marked name. Long topic names are cut, as file names have at most 255 bytes."""
        number = 0
        while True:
            ending = f"-{partition.partition}.{number:032x}-{mark}"
            name = partition.topic[: _LONGEST_NAME - len(ending)] + ending
            if not self.disk.exists(f"{self.path}/{name}"):
                return name
            number += 1


def future_name(partition: TopicPartition) -> str:
    """Return the directory name of a copy. There is at most one, so the number is constant."""
    return f"{partition}.{0:032x}-future"


def _partition_of(name: str) -> TopicPartition | None:
    found = _PARTITION.fullmatch(name)
    return TopicPartition(found["topic"], int(found["partition"])) if found else None
