"""Idempotent producers: duplicates are answered, gaps refused, also after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.cluster.log.errors import InvalidCheckpoint, OutOfOrderSequence, StaleProducerEpoch
from restow.cluster.log.producers import ProducerStates
from tests.unit.log.making import batch_of, open_log

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.log import AppendInfo, PartitionLog


def send(
    log: PartitionLog, sequence: int, *, count: int = 2, producer: int = 9, epoch: int = 0
) -> AppendInfo:
    values = [b"v"] * count
    batch = batch_of(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    return log.append_as_leader(batch, 0, 0)


def test_duplicates_of_the_last_five_batches_are_answered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sent = [send(log, 2 * number) for number in range(8)]
    for number in range(3, 8):
        again = send(log, 2 * number)
        assert again.duplicate
        assert (again.first_offset, again.last_offset) == sent[number][:2]
    with pytest.raises(OutOfOrderSequence, match="16 was to come"):
        send(log, 4)
    assert log.end_offset == 16
    log.release()


def test_gap_is_refused_and_the_next_batch_accepted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    with pytest.raises(OutOfOrderSequence):
        send(log, 3)
    assert send(log, 2).first_offset == 2
    log.release()


def test_overlapping_batch_is_no_duplicate(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    with pytest.raises(OutOfOrderSequence):
        send(log, 0, count=3)
    log.release()


def test_stale_producer_epoch_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, epoch=1)
    with pytest.raises(StaleProducerEpoch, match="epoch 0"):
        send(log, 2, epoch=0)
    with pytest.raises(OutOfOrderSequence):
        send(log, 2, epoch=2)
    assert not send(log, 0, epoch=2).duplicate
    log.release()


def test_unknown_producer_may_start_at_any_sequence(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert send(log, 41).first_offset == 0
    log.release()


def test_sequence_wraps_to_zero(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 2**31 - 3, count=4)
    assert not send(log, 1).duplicate
    assert send(log, 2**31 - 3, count=4).duplicate
    log.release()


@pytest.mark.parametrize("clean", [True, False])
def test_producers_are_restored_after_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path)
    for number in range(20):
        send(log, 2 * number)
        send(log, 2 * number, producer=10)
    assert len(log.segments) > 2
    log.close() if clean else log.release()
    again = open_log(tmp_path, recovery_point=None if clean else 0)
    assert send(again, 38).duplicate
    assert send(again, 38, producer=10).last_offset == 79
    with pytest.raises(OutOfOrderSequence):
        send(again, 42)
    assert send(again, 40).first_offset == 80
    again.release()


def test_truncation_forgets_later_batches_of_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(20):
        send(log, 2 * number)
    log.truncate_to(11)
    assert log.end_offset == 10
    assert send(log, 8).duplicate
    assert send(log, 10).first_offset == 10
    log.truncate_fully_and_start_at(50)
    assert send(log, 70).first_offset == 50
    log.release()


def test_followers_track_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch_of(b"v", b"w", producer_id=9, producer_epoch=0, base_sequence=0))
    assert send(log, 0).duplicate
    log.release()


def test_damaged_snapshot_is_ignored(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(20):
        send(log, 2 * number)
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = open_log(tmp_path)
    assert send(again, 38).duplicate
    again.release()


def test_only_two_snapshots_are_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(60):
        send(log, 2 * number)
    log.close()
    assert len(list(tmp_path.glob("*.snapshot"))) == 2


def test_idle_producers_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    log.producers.expire(1001)
    assert len(log.producers) == 1
    log.producers.expire(1002)
    assert len(log.producers) == 0
    log.release()


@pytest.mark.parametrize("size", range(46))
def test_truncated_snapshot_is_refused(size: int, tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    data = log.producers.encode()
    log.release()
    with pytest.raises(InvalidCheckpoint):
        ProducerStates().decode(data[:size])
