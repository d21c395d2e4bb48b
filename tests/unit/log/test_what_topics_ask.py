"""What a topic's configs ask of a leader's appends: keys for compaction, and one compression."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.cluster.log.errors import BatchTooLarge, InvalidRecord
from restow.wire.batches import CONTROL_BIT, LOG_APPEND_TIME, check, crc_of, scan
from restow.wire.compression import GZIP, LZ4, NAMES, NONE
from restow.wire.records import Record, build
from tests.unit.log.making import SMALL, batch_of, open_log, read_all, values_of

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.log import LogConfig

COMPACTED = replace(SMALL, cleanup_compact=True)
ROOMY = replace(SMALL, segment_bytes=1 << 20)


@pytest.mark.parametrize("compression", [NONE, GZIP])
def test_compacted_topic_refuses_records_without_key(tmp_path: Path, compression: int) -> None:
    log = open_log(tmp_path, COMPACTED)
    keys = (b"k", None, b"", None)
    batch = build([Record(i, 1_000, key, b"v") for i, key in enumerate(keys)], compression=compression)
    with pytest.raises(InvalidRecord, match="2 of 4 records have no key") as refused:
        log.append_as_leader(batch, 0, 1_000)
    assert [number for number, _ in refused.value.refused] == [1, 3]
    assert log.end_offset == 0


def test_other_topics_take_records_without_key(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.append_as_leader(build([Record(0, 1_000, None, b"v")]), 0, 1_000)
    assert values_of(log) == [b"v"]


@pytest.mark.parametrize("wanted", range(len(NAMES)), ids=NAMES)
def test_batches_are_stored_in_the_topics_compression(tmp_path: Path, wanted: int) -> None:
    log = open_log(tmp_path, replace(ROOMY, compression=wanted))
    for compression in range(len(NAMES)):
        batch = batch_of(b"v" * 40, b"w" * 40, time=1_000 * compression, compression=compression)
        info = log.append_as_leader(batch, 0, 1_000)
        assert info.first_offset == 2 * compression
    stored = log.read(0, 1 << 20)
    assert [header.compression for _, header in check(stored)] == [wanted] * len(NAMES)
    assert log.size_bytes == len(stored)
    assert [(record.offset, record.timestamp, record.value) for record in read_all(log)] == [
        (2 * number + each, 1_000 * number + each, value * 40)
        for number in range(len(NAMES))
        for each, value in enumerate((b"v", b"w"))
    ]


def test_recompressed_batch_gets_the_time_of_appending(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, compression=LZ4, timestamp_type=LOG_APPEND_TIME))
    log.append_as_leader(batch_of(b"v" * 40), 0, 7_000)
    ((_, header),) = scan(log.read(0, 1 << 20))
    assert (header.compression, header.timestamp_type, header.max_timestamp) == (LZ4, LOG_APPEND_TIME, 7_000)


def test_idempotent_batch_sent_again_is_known_after_recompression(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, compression=GZIP))
    batch = batch_of(b"v" * 40, producer_id=3, producer_epoch=0, base_sequence=0)
    first, again = (log.append_as_leader(batch, 0, 1_000) for _ in range(2))
    assert (again.first_offset, again.duplicate) == (first.first_offset, True)


def test_end_markers_stay_uncompressed(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, compression=GZIP))
    marker = batch_of(b"v", attributes=CONTROL_BIT)
    log.append_as_leader(marker, 0, 1_000, from_client=False)
    ((_, header),) = scan(log.read(0, 1 << 20))
    assert header.compression == NONE


def test_batch_that_grows_too_large_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, compression=NONE, max_message_bytes=500))
    with pytest.raises(BatchTooLarge):
        log.append_as_leader(batch_of(b"v" * 1_000, compression=GZIP), 0, 1_000)
    assert log.end_offset == 0


@pytest.mark.parametrize("config", [COMPACTED, replace(SMALL, compression=LZ4)])
def test_batch_that_cannot_be_opened_is_refused_for_good(tmp_path: Path, config: LogConfig) -> None:
    """CORRUPT_MESSAGE would make the producer send it again."""
    batch = bytearray(batch_of(b"v" * 40, compression=GZIP))
    batch[61:] = bytes(len(batch) - 61)
    batch[17:21] = crc_of(batch, 0, len(batch)).to_bytes(4)
    log = open_log(tmp_path, config)
    with pytest.raises(InvalidRecord, match="cannot be opened"):
        log.append_as_leader(bytes(batch), 0, 1_000)
