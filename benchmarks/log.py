"""A partition's log against the bare calls of the system: `python -m benchmarks.log [--json]`.

The same bytes are appended and read batch by batch, once through PartitionLog (CRC checked, offsets
given, indexed) and once with nothing but os.write and os.pread. Times are microseconds a batch. Nothing
is synced: brokers leave that to the system.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report import Row, best_of, print_rows, wants_json
from restow.cluster.log import LogConfig, PartitionLog
from restow.model import TopicPartition
from restow.runtime.disk import SystemDisk
from restow.wire.batches import HEADER_BYTES
from restow.wire.records import Record, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KIB = 1024
SIZES = (KIB, 16 * KIB, 128 * KIB)
BYTES_A_RUN = 64 * KIB * KIB
MOST_BATCHES = 4000
RUNS = 5
RECORDS = 8


def main() -> None:
    """Measure and print."""
    as_json = wants_json("A partition's log against bare system calls.")
    rows = []
    for size in SIZES:
        rows += measure(size)
    print_rows("Log, a batch at a time", rows, as_json=as_json)


def measure(size: int) -> list[Row]:
    """Append and read batches of one size, with the log and without."""
    batch = batch_of_size(size)
    count = min(MOST_BATCHES, BYTES_A_RUN // size)
    with folder() as path:
        appends = [best_of(RUNS, partial(do, path, batch, count)) for do in (log_append, bare_append)]
        log_append(path, batch, count)
        check(path, batch, count)
        reads = [best_of(RUNS, do) for do in (log_reader(path, size, count), bare_reader(path, size, count))]
    rows = []
    for name, peer, (ours_ms, peer_ms) in (("append", "os.write", appends), ("read", "os.pread", reads)):
        ours_us, peer_us = ours_ms * 1000 / count, peer_ms * 1000 / count
        speed = f"{size / ours_us:,.0f} MB/s against {size / peer_us:,.0f}"
        row = f"{name} of {size // KIB} KiB: {speed}"
        rows.append(Row(name=row, ours=ours_us, peer=peer_us, peer_name=peer, unit="µs"))
    return rows


def batch_of_size(size: int) -> bytes:
    """Return a batch of exactly that many bytes that no compression makes smaller."""
    value = os.urandom((size - HEADER_BYTES) // RECORDS - 16)
    records = [Record(number, 1000, None, value) for number in range(RECORDS - 1)]
    padding = 0
    while True:
        last = Record(RECORDS - 1, 1000, None, os.urandom(len(value) + padding))
        batch = build([*records, last])
        if len(batch) == size:
            return batch
        padding += max(1, (size - len(batch)) // 2)


def open_log(path: Path) -> PartitionLog:
    """Open a log with a broker's settings."""
    partition = TopicPartition("bench", 0)
    return PartitionLog(SystemDisk(), str(path), partition, LogConfig(max_message_bytes=KIB * KIB))


def log_append(path: Path, batch: bytes, count: int) -> None:
    """Append all batches to a new log."""
    shutil.rmtree(path)
    path.mkdir()
    log = open_log(path)
    for _ in range(count):
        log.append_as_leader(batch, 0, 0)
    log.release()


def bare_append(path: Path, batch: bytes, count: int) -> None:
    """Append all batches to a new file."""
    shutil.rmtree(path)
    path.mkdir()
    descriptor = os.open(path / "bare", os.O_RDWR | os.O_CREAT)
    for _ in range(count):
        os.write(descriptor, batch)
    os.close(descriptor)


def log_reader(path: Path, size: int, count: int) -> Callable[[], None]:
    """Read a log from its start to its end as a consumer does that takes a batch at a time."""
    log = open_log(path)

    def work() -> None:
        for number in range(count):
            log.read(number * RECORDS, size)

    return work


def bare_reader(path: Path, size: int, count: int) -> Callable[[], None]:
    """Read the same file without looking at it."""
    descriptor = os.open(path / "00000000000000000000.log", os.O_RDONLY)

    def work() -> None:
        for number in range(count):
            os.pread(descriptor, size, number * size)

    return work


def check(path: Path, batch: bytes, count: int) -> None:
    """Stop the benchmark if the log does not have what was appended."""
    log = open_log(path)
    found = [log.read(number * RECORDS, len(batch))[16:] for number in (0, count // 2, count - 1)]
    log.release()
    if found != [batch[16:]] * 3 or log.size_bytes != len(batch) * count:
        raise SystemExit("The log does not have what was appended; there is nothing to compare.")


@contextmanager
def folder() -> Iterator[Path]:
    """Make a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="restow-bench-") as name:
        path = Path(name) / "log"
        path.mkdir()
        yield path


if __name__ == "__main__":
    main()
