"""Batches, logs and failing disks for the tests of logs."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, TypeVar

from restow.cluster.log import LogConfig, PartitionLog
from restow.cluster.log.timestamps import first_at_or_after
from restow.model import TopicPartition
from restow.runtime.disk import SystemDisk
from restow.wire.batches import scan
from restow.wire.records import Record, build, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from restow.cluster.log.timestamps import TimedOffset
    from restow.runtime.disk import File, Part

T = TypeVar("T")

PARTITION = TopicPartition("t", 0)
SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def batch_of(
    *values: bytes | None, offset: int = 0, time: int = 1000, key: bytes = b"k", **more: Any
) -> bytes:
    """Return a batch with a record for each value."""
    records = [Record(offset + i, time + i, key, value) for i, value in enumerate(values)]
    return build(records, **more)


def keyed(*pairs: tuple[str, str | None], time: int = 1000, **more: Any) -> bytes:
    """Return a batch with a record for each key and value."""
    records = [
        Record(i, time + i, key.encode(), None if value is None else value.encode())
        for i, (key, value) in enumerate(pairs)
    ]
    return build(records, **more)


def open_log(path: Path, config: LogConfig = SMALL, **more: Any) -> PartitionLog:
    path.mkdir(exist_ok=True)
    return PartitionLog(SystemDisk(), str(path), PARTITION, config, **more)


def read_all(log: PartitionLog, max_bytes: int = 1 << 20) -> list[Record]:
    """Return every record, read like a consumer from one offset to the next."""
    found: list[Record] = []
    offset = log.start_offset
    while data := log.read(offset, max_bytes):
        for position, header in scan(data):
            batch = data[position : position + header.size]
            found += [record for record in parse(batch) if record.offset >= offset]
            offset = header.next_offset
    return found


def values_of(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in read_all(log)]


def offset_of(log: PartitionLog, timestamp: int) -> TimedOffset | None:
    """Return the first record that is not earlier."""
    return result_of(first_at_or_after(log, timestamp))


def result_of(search: Generator[None, None, T]) -> T:
    """Run a generator to its end and return its result."""
    try:
        while True:
            next(search)
    except StopIteration as done:
        found: T = done.value
        return found


class Crash(Exception):
    """A simulated crash, which no code may catch."""


class FaultyDisk:
    """A disk that works until `fault` raises.

    `fault` is called before each change with its name and path.
    """

    def __init__(self, fault: Callable[[str, str], None] | None = None) -> None:
        self._disk = SystemDisk()
        self.fault = fault or (lambda name, path: None)

    def open(self, path: str, *, create: bool = False) -> File:
        self.fault("open", path)
        return FaultyFile(self, path, self._disk.open(path, create=create))

    def write_atomically(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.fault("write_atomically", path)
        self._disk.write_atomically(path, data, durable=durable)

    def sync_all(self) -> None:
        self.fault("sync_all", "")
        self._disk.sync_all()

    def __getattr__(self, name: str) -> Any:
        wrapped = getattr(self._disk, name)

        def call(path: str, *arguments: Any) -> Any:
            self.fault(name, path)
            return wrapped(path, *arguments)

        return call


class FaultyFile:
    def __init__(self, disk: FaultyDisk, path: str, file: File) -> None:
        self._disk = disk
        self._path = path
        self._file = file

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, *parts: Part) -> int:
        self._disk.fault("append", self._path)
        return self._file.append(*parts)

    def read(self, position: int, size: int) -> bytes:
        self._disk.fault("read", self._path)
        return self._file.read(position, size)

    def truncate(self, size: int) -> None:
        self._disk.fault("truncate", self._path)
        self._file.truncate(size)

    def sync(self) -> None:
        self._disk.fault("sync", self._path)
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def full_under(directory: str) -> Callable[[str, str], None]:
    """Return a fault: the directory's volume is full."""

    def fault(name: str, path: str) -> None:
        if path.startswith(directory):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    return fault
