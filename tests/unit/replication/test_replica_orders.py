"""Controller requests to replicas, refusals, and replicas on a failed disk."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING
from uuid import UUID

from restow.cluster.replication import Role
from restow.cluster.replication.requests import text_of
from restow.model import TopicPartition
from restow.runtime.disk import SystemDisk
from restow.wire.error_codes import ErrorCode
from tests.clock import settle
from tests.unit.replication.replicas import T0, TOPIC_ID, Cluster, run

if TYPE_CHECKING:
    from pathlib import Path

    from restow.runtime.disk import File, Part

T1 = TopicPartition("t", 1)


def test_earlier_leader_epoch_is_refused_and_same_epoch_applied_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        earlier = cluster.order()
        cluster.elect(2)
        answer = cluster.brokers[1].apply_leader_and_isr(earlier)
        assert answer.topics[0].partition_errors[0].error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert cluster.at(1).role is Role.FOLLOWER
        heard = len(cluster.led)
        assert cluster.tell(2) == 0
        assert cluster.led[heard:] == [(2, (), ())]
        await cluster.close()

    run(scenario())


def test_leadership_changes_are_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        cluster.elect(2)
        assert cluster.led == [(1, (T0,), ()), (2, (), ()), (1, (), (T0,)), (2, (T0,), ())]
        cluster.stop_replica(2, delete=False)
        assert cluster.led[-1] == (2, (), (T0,))
        await cluster.close()

    run(scenario())


def test_response_has_topic_id_and_partition(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        answer = cluster.brokers[1].apply_leader_and_isr(cluster.order())
        (topic,) = answer.topics
        (partition,) = topic.partition_errors
        assert (topic.topic_id, partition.partition_index, partition.error_code) == (TOPIC_ID, 0, 0)
        await cluster.close()

    run(scenario())


def test_stop_replica_keeps_the_log_unless_deleting(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "a")
        assert cluster.stop_replica(2, delete=False) == 0
        assert cluster.brokers[2].partition(T0) is None
        assert cluster.brokers[2].logs.get(T0) is not None
        del cluster.asked[:]
        await cluster.clock.advance(2)
        assert cluster.asked == []
        assert cluster.stop_replica(2, delete=True) == 0
        assert cluster.brokers[2].logs.get(T0) is None
        assert cluster.stop_replica(2, delete=True) == 0
        await cluster.close()

    run(scenario())


def test_stop_replica_of_earlier_epoch_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        cluster.elect(1)
        assert cluster.stop_replica(1, delete=True, leader_epoch=0) == ErrorCode.FENCED_LEADER_EPOCH
        assert cluster.at(1).is_leader
        assert cluster.stop_replica(1, delete=True, leader_epoch=-2) == 0
        await cluster.close()

    run(scenario())


def test_order_from_before_the_deletion_does_not_make_the_replica_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        late = cluster.order(is_new=True)
        assert cluster.stop_replica(2, delete=True, leader_epoch=0) == 0
        answer = cluster.brokers[2].apply_leader_and_isr(late)
        assert answer.topics[0].partition_errors[0].error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert cluster.brokers[2].logs.get(T0) is None
        cluster.elect(1, is_new=True)
        assert cluster.at(2).role is Role.FOLLOWER, "a later epoch brings the replica back"
        await cluster.close()

    run(scenario())


def test_deleted_topic_stays_deleted_and_another_of_its_name_does_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        cluster.elect(1)
        late = cluster.order()
        assert cluster.stop_replica(1, delete=True, leader_epoch=-2) == 0
        answer = cluster.brokers[1].apply_leader_and_isr(late)
        assert answer.topics[0].partition_errors[0].error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        late.topic_states[0].topic_id = UUID(int=8)
        answer = cluster.brokers[1].apply_leader_and_isr(late)
        assert answer.topics[0].partition_errors[0].error_code == 0
        assert cluster.at(1).is_leader
        await cluster.close()

    run(scenario())


def test_recreated_topic_does_not_get_the_old_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        request = cluster.order()
        request.topic_states[0].topic_id = UUID(int=8)
        answer = cluster.brokers[1].apply_leader_and_isr(request)
        assert answer.topics[0].partition_errors[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
        await cluster.close()

    run(scenario())


def test_topic_id_text_equals_that_of_kafka() -> None:
    assert text_of(None) is None
    assert text_of(UUID(int=0)) is None
    assert text_of(UUID(int=7)) == "AAAAAAAAAAAAAAAAAAAABw"


class FullFile:
    """A file on a disk that becomes full on request."""

    def __init__(self, disk: FullDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    def append(self, *parts: Part) -> int:
        if self._disk.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.append(*parts)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class FullDisk(SystemDisk):
    is_full = False

    def open(self, path: str, *, create: bool = False) -> File:  # type: ignore[override]
        return FullFile(self, super().open(path, create=create))  # type: ignore[return-value]


def test_failed_disk_takes_only_its_replicas_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FullDisk()
        cluster = Cluster(tmp_path, 2, disk=disk)
        cluster.elect(1, is_new=True)
        cluster.elect(2, is_new=True, topic_partition=T1, replicas=[1, 2])
        await settle()
        cluster.cut.add((2, 1))
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await settle()
        disk.is_full = True
        assert (await cluster.produce(1, "b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await settle()
        disk.is_full = False
        assert (await waiting).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert cluster.at(1).role is Role.OFFLINE
        assert cluster.at(1, T1).role is Role.OFFLINE
        assert cluster.led[-1] == (1, (), (T0,))
        assert (await cluster.consume(1, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert cluster.stop_replica(1, delete=True) == ErrorCode.KAFKA_STORAGE_ERROR
        del cluster.asked[:]
        await cluster.clock.advance(3)
        assert not [link for link, _ in cluster.asked if link[0] == 1]
        assert cluster.elect(1)[1] == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await cluster.produce(2, "c", topic_partition=T1, acks=1)).error_code == 0
        await cluster.close()

    run(scenario())


def test_replica_in_a_failed_log_dir_does_not_begin_anew_in_another(tmp_path: Path) -> None:
    """A resumed reassignment calls its replicas new, even one that is in the ISR or leads."""

    async def scenario() -> None:
        disk = FullDisk()
        cluster = Cluster(tmp_path, 2, disk=disk, log_dirs=2)
        cluster.elect(1, is_new=True)
        await settle()
        assert (await cluster.produce(1, "a")).error_code == 0
        disk.is_full = True
        assert (await cluster.produce(1, "b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await settle()
        disk.is_full = False
        assert cluster.elect(1, is_new=True)[1] == ErrorCode.KAFKA_STORAGE_ERROR
        assert cluster.at(1).role is Role.OFFLINE
        await cluster.close()

    run(scenario())


def test_assigned_partition_without_log_is_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.brokers[1].directory_failed("somewhere", (T1,))
        assert (await cluster.produce(1, "a", topic_partition=T1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await cluster.close()

    run(scenario())
