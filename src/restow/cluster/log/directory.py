"""One log dir of a broker: a directory per partition, and the checkpoints that go with them.

topic-0/                     a partition
topic-0.<number>-future/     a copy that is to replace the one in another log dir
topic-0.<number>-delete/     one that is going to be removed
topic-0.<number>-stray/      likewise, because the cluster does not know of it
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
"""Up to so many logs are synced one by one; for more, the whole disk is."""


class LogDirectory:
    """A path on one disk. When that fails, everything in it is offline."""

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
        """From where on a log has not been compacted."""
        self.doomed: list[str] = []
        """Paths that are to be removed."""
        self._on_append = on_append
        self._written: dict[str, bytes] = {}
        self._lock: Lock | None = None

    @property
    def is_online(self) -> bool:
        """Whether the disk has done all it was told so far."""
        return self.disk.failure is None

    def load(self, meta: MetaProperties, config_of: Callable[[str], LogConfig]) -> None:
        """Make the directory ours, and take over the logs that are in it."""
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
                self.futures[partition] = self._open_future(name, partition, config_of, clean=clean)
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
        """A new, empty log. To make its directory takes longer than all the rest, and can wait a little."""
        log = self.logs[partition] = self._open(str(partition), partition, config, fresh=True)
        if topic_id is not None:
            self.topic_ids[partition] = topic_id
        self.disk.late[log.directory] = partial(self._write_topic_id, partition)
        return log

    def create_future(
        self, partition: TopicPartition, config: LogConfig, topic_id: str | None = None
    ) -> PartitionLog:
        """A new, empty log that is to replace the one in another directory."""
        name = future_name(partition)
        self.disk.make_directory(f"{self.path}/{name}")
        log = self.futures[partition] = self._open(name, partition, config, fresh=True)
        if topic_id is not None:
            self.set_topic_id(partition, topic_id)
        return log

    def promote(self, partition: TopicPartition) -> PartitionLog:
        """Make the future log the present one; that of the other directory is to be doomed at once."""
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
        """Take a log out of use and give its directory a name that says it is to be removed."""
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
        """Whether there are directories to make or to remove, which nobody waits for."""
        return bool(self.disk.late or self.doomed)

    def do_a_chore(self) -> None:
        """Make the directory of one new log, or remove one that was doomed."""
        if self.disk.late:
            self.disk.make_late(next(iter(self.disk.late)))
        else:
            self.disk.remove_tree(self.doomed[0])
            del self.doomed[0]

    def set_topic_id(self, partition: TopicPartition, topic_id: str) -> None:
        """Write down to which topic the partition belongs, should another one get its name."""
        self.topic_ids[partition] = topic_id
        self._write_topic_id(partition)

    def _write_topic_id(self, partition: TopicPartition) -> None:
        topic_id = self.topic_ids.get(partition)
        if topic_id is not None:
            log = self.logs.get(partition) or self.futures[partition]
            path = f"{log.directory}/{PARTITION_METADATA}"
            self.disk.write_atomically(path, encode_topic_id(topic_id), durable=False)

    def checkpoint(self, *, durable: bool = False) -> None:
        """Write down where the logs stand, as far as that has changed since the last time."""
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
        """Close all logs and leave a sign that it was done in order."""
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
        """The disk has failed, or everything is to be dropped as it stands: give back what can be."""
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

    def _open_future(
        self,
        name: str,
        partition: TopicPartition,
        config_of: Callable[[str], LogConfig],
        *,
        clean: bool,
    ) -> PartitionLog:
        """A copy that was not finished. No checkpoint speaks of it, so after a crash all of it is checked."""
        self._read_topic_id(partition, f"{self.path}/{name}")
        return self._open(name, partition, config_of(partition.topic), recovery_point=None if clean else 0)

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
        """A log that turns out to be damaged is checked from its beginning, and cut off at the damage."""
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
        """A checkpoint that is missing or damaged tells nothing: then the logs themselves have to."""
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
        """A marked name nobody has. A long topic name is cut, as no file name may be longer than 255."""
        number = 0
        while True:
            ending = f"-{partition.partition}.{number:032x}-{mark}"
            name = partition.topic[: _LONGEST_NAME - len(ending)] + ending
            if not self.disk.exists(f"{self.path}/{name}"):
                return name
            number += 1


def future_name(partition: TopicPartition) -> str:
    """The directory of a copy that is being made. There is one at most, so the number says nothing."""
    return f"{partition}.{0:032x}-future"


def _partition_of(name: str) -> TopicPartition | None:
    found = _PARTITION.fullmatch(name)
    return TopicPartition(found["topic"], int(found["partition"])) if found else None
