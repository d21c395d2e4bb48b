"""Kafka's tools read our segments, and we read Kafka's."""

from __future__ import annotations

import random
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.java import java
from harness.jvm import logging_options
from restow.cluster.log import LogConfig
from restow.cluster.log.cleaner import clean
from restow.runtime.disk import SystemDisk
from restow.wire.batches import header_at
from restow.wire.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from restow.wire.records import Record, build
from tests.unit.log.making import batch_of, keyed, offset_of, open_log, read_all

if TYPE_CHECKING:
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=300, cleanup_compact=True)
COMPLAINTS = re.compile(r"isvalid: false|mismatch|out of order|not found|Found|Failed|corrupt", re.IGNORECASE)


def dump(jars: Path, folder: Path) -> str:
    """Return the output of Kafka's DumpLogSegments for a partition's directory."""
    suffixes = (".log", ".index", ".timeindex", ".snapshot")
    files = sorted(str(path) for path in folder.iterdir() if path.suffix in suffixes)
    command = [java(), "-cp", f"{jars}/*", *logging_options("OFF"), "kafka.tools.DumpLogSegments"]
    command += ["--deep-iteration", "--print-data-log", "--files", ",".join(files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafka_reads_our_segments(jars: Path, tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    for number in range(80):
        batch = batch_of(
            random.Random(number).randbytes(50),
            b"y",
            time=1000 + number * 37 % 50,
            producer_id=5,
            producer_epoch=1,
            base_sequence=2 * number,
            compression=number % len(NAMES),
        )
        log.append_as_leader(batch, number // 20, 0)
    log.close()
    said = dump(jars, tmp_path)
    assert not COMPLAINTS.search(said), said
    assert len(list(tmp_path.glob("*.log"))) > 1
    assert [int(offset) for offset in re.findall(r"\| offset: (\d+)", said)] == list(range(160))
    assert re.findall(r"partitionLeaderEpoch: (\d+)", said) == [str(n // 20) for n in range(80)]
    assert re.search(r"offset: \d+ position: [1-9]", said)
    assert re.search(r"timestamp: \d+ offset: \d+", said)
    assert "producerId: 5 producerEpoch: 1 coordinatorEpoch: -1" in said
    assert "firstSequence: 158 lastSequence: 159 lastOffset: 159" in said


@pytest.mark.parametrize("compression", [NONE, GZIP, SNAPPY, LZ4, ZSTD], ids=NAMES)
def test_kafka_reads_our_compacted_segments(jars: Path, tmp_path: Path, compression: int) -> None:
    log = open_log(tmp_path, CONFIG)
    for number in range(120):
        pairs = [(f"k{number % 7}", None if number % 11 == 0 else str(number)), (f"l{number}", "stays" * 20)]
        log.append_as_leader(keyed(*pairs, compression=compression), 0, 0)
    log.high_watermark = log.end_offset
    assert log.size_bytes > CONFIG.segment_bytes
    for _ in clean(log, SystemDisk(), 0, 5000):
        pass
    kept = [record.offset for record in read_all(log)]
    rebuilt = [header for _, header in log.segments[0].headers() if header.count == 1]
    assert {header.compression for header in rebuilt} == {compression}
    log.close()
    said = dump(jars, tmp_path)
    assert not COMPLAINTS.search(said), said
    assert [int(offset) for offset in re.findall(r"\| offset: (\d+)", said)] == kept
    assert len(kept) < 240
    assert said.count("stays" * 20) == 120


def test_segment_of_kafka_is_read(gateway: JavaGateway, tmp_path: Path) -> None:
    """Kafka writes a segment with its own indexes; we find every offset and timestamp in it."""
    jvm = gateway.jvm
    storage = jvm.org.apache.kafka.storage.internals.log
    settings = jvm.java.util.HashMap()
    settings.put("index.interval.bytes", "300")
    settings.put("segment.bytes", "100000")
    segment = storage.LogSegment.open(
        jvm.java.io.File(str(tmp_path)),
        0,
        storage.LogConfig(settings),
        jvm.org.apache.kafka.common.utils.Time.SYSTEM,
        0,
        False,
    )
    written = []
    for number in range(60):
        base = len(written)
        time = 1000 + number * 37 % 50
        records = [Record(base + i, time + i, b"k", b"v" * 40) for i in range(2)]
        written += records
        batch = build(records, leader_epoch=number // 20, compression=GZIP if number % 2 else 0)
        last = header_at(batch).last_offset
        readable = jvm.org.apache.kafka.common.record.MemoryRecords.readableRecords(
            jvm.java.nio.ByteBuffer.wrap(batch)
        )
        segment.append(last, readable)
    segment.onBecomeInactiveSegment()
    segment.flush()
    segment.close()
    assert (tmp_path / "00000000000000000000.index").stat().st_size > 0
    log = open_log(tmp_path, CONFIG)
    assert len(log.segments[0]._index) > 5
    assert len(log.segments[0]._times) > 0
    assert read_all(log) == written
    assert log.epochs.latest == 2
    for wanted in range(1000, 1052):
        expected = next((record.offset for record in written if record.timestamp >= wanted), None)
        found = offset_of(log, wanted)
        assert (None if found is None else found.offset) == expected
    log.release()
