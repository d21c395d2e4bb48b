"""Transactions in a partition's log: last stable offset, aborted ones, markers, restarts and compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.log import LogConfig
from restow.cluster.log.cleaner import clean
from restow.cluster.log.errors import (
    CoordinatorFenced,
    InvalidTransaction,
    OutOfOrderSequence,
    StaleProducerEpoch,
)
from restow.wire.batches import TRANSACTIONAL_BIT, header_at, scan
from restow.wire.end_markers import EndMarker, build_end_marker, end_marker_of
from restow.wire.records import Record, build, parse
from tests.unit.log.making import SMALL, open_log, result_of

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.log import AppendInfo, PartitionLog

A, B = 7, 8


def begin(log: PartitionLog, producer: int, sequence: int, *values: bytes, epoch: int = 0) -> AppendInfo:
    """Append a batch of a transaction that its coordinator knows."""
    batch = transactional(producer, sequence, *values, epoch=epoch)
    verification = log.producers.begin_verification(header_at(batch))
    return log.append_as_leader(batch, 0, 0, verification=verification)


def transactional(producer: int, sequence: int, *values: bytes, epoch: int = 0, key: bytes = b"k") -> bytes:
    return build(
        [Record(at, 1000, key, value) for at, value in enumerate(values or (b"v",))],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_BIT,
    )


def end(log: PartitionLog, producer: int, *, commits: bool, epoch: int = 0, coordinator: int = 0) -> None:
    marker = build_end_marker(producer, epoch, EndMarker(commits, coordinator), 1000)
    log.append_as_leader(marker, 0, 0, from_client=False)


def replicate(log: PartitionLog) -> int:
    """Let the high watermark catch up, and return the last stable offset."""
    log.high_watermark = log.end_offset
    return log.last_stable_offset


def committed(log: PartitionLog) -> list[bytes | None]:
    """Read as a consumer of committed records does."""
    found: list[bytes | None] = []
    offset = log.start_offset
    aborted: set[int] = set()
    while batches := log.read(offset, 1 << 20, log.last_stable_offset):
        upcoming = sorted((first, producer) for producer, first in log.aborted_with(offset, batches))
        for position, header in scan(batches):
            while upcoming and upcoming[0][0] <= header.last_offset:
                aborted.add(upcoming.pop(0)[1])
            batch = batches[position : position + header.size]
            if header.is_control:
                marker = end_marker_of(batch)
                assert marker is not None
                if not marker.commits:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found += [each.value for each in parse(batch)]
            offset = header.next_offset
    return found


def test_last_stable_offset_is_where_the_first_open_transaction_begins(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert begin(log, A, 0, b"1", b"2").first_offset == 0
    assert begin(log, B, 0).first_offset == 2
    begin(log, A, 2)
    assert replicate(log) == 0
    end(log, A, commits=True)
    assert log.last_stable_offset == 0
    """The marker is not replicated yet."""
    assert replicate(log) == 2
    end(log, B, commits=False)
    assert replicate(log) == log.end_offset == 6
    log.release()


def test_aborted_records_are_known_to_readers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, A, 0, b"a")
    begin(log, B, 0, b"b")
    end(log, A, commits=False)
    begin(log, A, 1, b"c")
    end(log, B, commits=True)
    end(log, A, commits=True)
    replicate(log)
    assert list(log.aborted_in(0, 9)) == [(A, 0, 2, 1)]
    assert list(log.aborted_in(3, 9)) == []
    assert committed(log) == [b"b", b"c"]
    log.release()


def test_log_is_stable_up_to_its_high_watermark_without_another_write(tmp_path: Path) -> None:
    """After a restart, and after what was not replicated is cut off."""
    log = open_log(tmp_path, SMALL)
    begin(log, A, 0)
    end(log, A, commits=True)
    assert replicate(log) == 2
    begin(log, B, 0)
    log.truncate_to(2)
    assert log.last_stable_offset == 2
    log.close()
    again = open_log(tmp_path, SMALL, recovery_point=None, high_watermark=2)
    assert again.last_stable_offset == 2
    again.release()


@pytest.mark.parametrize("how", ["close", "release"])
def test_transactions_survive_a_restart(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path, SMALL)
    for number in range(30):
        begin(log, A, number, b"a%d" % number)
        end(log, A, commits=number % 3 > 0)
    begin(log, B, 0, b"open")
    begin(log, A, 30, b"later")
    end(log, A, commits=False)
    replicate(log)
    before = committed(log), list(log.aborted_in(0, log.end_offset)), log.last_stable_offset
    assert len(log.segments) > 3
    getattr(log, how)()
    again = open_log(tmp_path, SMALL, recovery_point=None if how == "close" else 0)
    replicate(again)
    assert (committed(again), list(again.aborted_in(0, again.end_offset)), again.last_stable_offset) == before
    end(again, B, commits=True)
    assert replicate(again) == again.end_offset
    assert committed(again)[-1] == b"open"
    again.release()


def test_torn_index_of_aborted_transactions_is_completed_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(4):
        begin(log, A, number)
        end(log, A, commits=False)
    log.release()
    (index,) = tmp_path.glob("*.txnindex")
    index.write_bytes(index.read_bytes()[:50])
    again = open_log(tmp_path, recovery_point=0)
    assert [each.first_offset for each in again.aborted_in(0, 99)] == [0, 2, 4, 6]
    assert len(index.read_bytes()) == 4 * 34
    again.release()


def test_truncation_opens_a_transaction_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, A, 0)
    end(log, A, commits=False)
    begin(log, A, 1)
    end(log, A, commits=False)
    log.truncate_to(3)
    assert [each.first_offset for each in log.aborted_in(0, 99)] == [0]
    assert replicate(log) == 2
    log.truncate_to(1)
    assert list(log.aborted_in(0, 99)) == []
    assert replicate(log) == 0
    log.release()


def test_followers_track_transactions_like_their_leader(tmp_path: Path) -> None:
    (tmp_path / "leader").mkdir()
    (tmp_path / "follower").mkdir()
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    begin(leader, A, 0, b"a")
    begin(leader, B, 0, b"b")
    end(leader, A, commits=False)
    follower.append_as_follower(leader.read(0, 1 << 20))
    for log in (leader, follower):
        replicate(log)
    assert list(follower.aborted_in(0, 9)) == list(leader.aborted_in(0, 9)) != []
    assert follower.last_stable_offset == leader.last_stable_offset == 1
    for log in (leader, follower):
        log.release()


def test_batch_that_nobody_has_verified_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(InvalidTransaction):
        log.append_as_leader(transactional(A, 0), 0, 0)
    begin(log, A, 0)
    log.append_as_leader(transactional(A, 1), 0, 0)
    assert log.end_offset == 2
    log.release()


def test_end_marker_voids_a_verification(tmp_path: Path) -> None:
    """A batch that was verified before an abort and arrives after it must not begin a transaction."""
    log = open_log(tmp_path)
    batch = transactional(A, 0)
    verification = log.producers.begin_verification(header_at(batch))
    end(log, A, commits=False)
    with pytest.raises(InvalidTransaction):
        log.append_as_leader(batch, 0, 0, verification=verification)
    assert replicate(log) == log.end_offset == 1
    log.release()


def test_later_batch_does_not_begin_before_an_earlier_one_that_waits(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first, second = transactional(A, 0), transactional(A, 1)
    verification = log.producers.begin_verification(header_at(first))
    assert log.producers.begin_verification(header_at(second)) is verification
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(second, 0, 0, verification=verification)
    log.append_as_leader(first, 0, 0, verification=verification)
    log.append_as_leader(second, 0, 0, verification=verification)
    log.release()


def test_batch_outside_of_the_open_transaction_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, A, 0)
    plain = build([Record(0, 1000, b"k", b"v")], producer_id=A, producer_epoch=0, base_sequence=1)
    with pytest.raises(InvalidTransaction):
        log.append_as_leader(plain, 0, 0)
    end(log, A, commits=True)
    log.append_as_leader(plain, 0, 0)
    log.release()


def test_marker_with_a_higher_epoch_fences_the_producer(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, A, 0)
    end(log, A, commits=False, epoch=1)
    with pytest.raises(StaleProducerEpoch):
        begin(log, A, 1)
    with pytest.raises(StaleProducerEpoch):
        end(log, A, commits=True, epoch=0)
    with pytest.raises(OutOfOrderSequence):
        begin(log, A, 1, epoch=1)
    begin(log, A, 0, epoch=1)
    log.release()


def test_marker_of_a_replaced_coordinator_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, A, 0)
    end(log, A, commits=True, coordinator=5)
    begin(log, A, 1)
    with pytest.raises(CoordinatorFenced):
        end(log, A, commits=False, coordinator=4)
    end(log, A, commits=True, coordinator=5)
    log.release()


def test_producer_with_an_open_transaction_does_not_expire(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, A, 0)
    begin(log, B, 0)
    end(log, B, commits=True)
    log.producers.expire(10_000)
    assert [identity for identity, _ in log.producers] == [A]
    log.release()


class TestCompaction:
    """Compaction of a log with transactions."""

    CONFIG = LogConfig(
        cleanup_compact=True, cleanup_delete=False, segment_bytes=400, delete_retention_ms=1000
    )

    def write(self, log: PartitionLog, count: int) -> None:
        """Write a transaction after the other to the same few keys, of which every third is aborted."""
        for number in range(count):
            batch = transactional(A, number, b"%d" % number, key=b"k%d" % (number % 4))
            verification = log.producers.begin_verification(header_at(batch))
            log.append_as_leader(batch, 0, 0, verification=verification)
            end(log, A, commits=number % 3 > 0)
        replicate(log)

    def compact(self, log: PartitionLog, disk: Any, now_ms: int) -> None:
        result_of(clean(log, disk, 0, now_ms))

    def test_aborted_records_neither_stay_nor_supersede_others(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, self.CONFIG)
        self.write(log, 40)
        before = last_of_each(log)
        self.compact(log, log._disk, 0)
        assert last_of_each(log) == before
        left = {each.offset for each in all_records(log) if each.offset < log.segments[-1].base_offset}
        assert len(left) < 20
        log.release()

    def test_open_transaction_is_left_alone(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, self.CONFIG)
        begin(log, B, 0, b"open")
        self.write(log, 20)
        before = all_records(log)
        self.compact(log, log._disk, 0)
        assert all_records(log) == before
        log.release()

    def test_markers_go_some_time_after_their_records(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, self.CONFIG)
        self.write(log, 40)
        self.compact(log, log._disk, 0)
        kept = markers(log)
        self.compact(log, log._disk, 500)
        assert markers(log) == kept
        self.compact(log, log._disk, 2000)
        self.compact(log, log._disk, 4000)
        assert len(markers(log)) < len(kept)
        before = last_of_each(log)
        log.close()
        again = open_log(tmp_path, self.CONFIG)
        replicate(again)
        assert last_of_each(again) == before
        assert begin(again, A, 40).first_offset == again.end_offset - 1
        again.release()


def all_records(log: PartitionLog) -> list[Record]:
    found: list[Record] = []
    for segment in log.segments:
        for _, header, batch in segment.batches():
            if not header.is_control:
                found += parse(batch)
    return found


def markers(log: PartitionLog) -> list[int]:
    return [header.base_offset for each in log.segments for _, header in each.headers() if header.is_control]


def last_of_each(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """Return the last committed value of each key."""
    by_value = {each.value: each.key for each in all_records(log)}
    return {by_value[value]: value for value in committed(log)}
