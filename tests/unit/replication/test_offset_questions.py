"""Offset lookups by timestamp and by epoch, and record deletion."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.log import LogConfig
from restow.cluster.replication import EpochQuestion, FoundOffset, LowWatermark, OffsetQuestion
from restow.cluster.replication.offsets import EARLIEST, LATEST, LATEST_TIERED, OF_MAX_TIMESTAMP
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build
from tests.clock import settle
from tests.unit.replication.replicas import T0, Cluster, run

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = TopicPartition("nowhere", 0)


async def ask(
    cluster: Cluster, broker: int, timestamp: int, epoch: int = -1, replica_id: int = -1
) -> FoundOffset:
    question = OffsetQuestion(timestamp, epoch)
    return (await cluster.brokers[broker].list_offsets({T0: question}, replica_id))[T0]


def test_list_offsets_by_timestamp(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        assert await ask(cluster, 1, OF_MAX_TIMESTAMP) == FoundOffset()
        for timestamp in (10, 30, 20):
            data = build([Record(0, timestamp, None, b"x")])
            await cluster.brokers[1].append({T0: data}, acks=-1, timeout_ms=100)
        assert await ask(cluster, 1, EARLIEST) == FoundOffset(0, 0, leader_epoch=0)
        assert await ask(cluster, 1, LATEST) == FoundOffset(0, 3, leader_epoch=0)
        assert await ask(cluster, 1, OF_MAX_TIMESTAMP) == FoundOffset(0, 1, 30, 0)
        assert await ask(cluster, 1, 15) == FoundOffset(0, 1, 30, 0)
        assert await ask(cluster, 1, 31) == FoundOffset()
        assert await ask(cluster, 1, LATEST_TIERED) == FoundOffset()
        assert await ask(cluster, 1, LATEST, epoch=1) == FoundOffset(ErrorCode.UNKNOWN_LEADER_EPOCH)
        unknown = await cluster.brokers[1].list_offsets({NOWHERE: OffsetQuestion(LATEST)})
        assert unknown == {NOWHERE: FoundOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        await cluster.close()

    run(scenario())


def test_list_offsets_hides_records_above_the_high_watermark(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        await cluster.produce(1, "a", acks=1)
        assert (await ask(cluster, 1, LATEST)).offset == 0
        assert (await ask(cluster, 1, LATEST, replica_id=2)).offset == 1
        assert await ask(cluster, 1, 0) == FoundOffset()
        assert await ask(cluster, 2, LATEST) == FoundOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        cluster.elect(1)
        assert await ask(cluster, 1, LATEST) == FoundOffset(ErrorCode.OFFSET_NOT_AVAILABLE)
        assert (await ask(cluster, 1, EARLIEST)).error_code == 0
        cluster.cut.clear()
        await cluster.clock.advance(2)
        assert (await ask(cluster, 1, LATEST)).offset == 1
        await cluster.close()

    run(scenario())


def test_offsets_for_leader_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        for count in (2, 3):
            cluster.elect(1, is_new=True)
            for _ in range(count):
                await cluster.produce(1, "x")

        def end_of(epoch: int, leader_epoch: int = -1) -> FoundOffset:
            question = EpochQuestion(epoch, leader_epoch)
            return cluster.brokers[1].offsets_for_leader_epoch({T0: question})[T0]

        assert end_of(0) == FoundOffset(0, 2, leader_epoch=0)
        assert end_of(1) == FoundOffset(0, 5, leader_epoch=1)
        assert end_of(7) == FoundOffset(0, -1, leader_epoch=-1)
        assert end_of(0, leader_epoch=0) == FoundOffset(ErrorCode.FENCED_LEADER_EPOCH)
        unknown = cluster.brokers[1].offsets_for_leader_epoch({NOWHERE: EpochQuestion(0)})
        assert unknown[NOWHERE].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await cluster.close()

    run(scenario())


def test_delete_records_deletes_on_all_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        for _ in range(4):
            await cluster.produce(1, "x")
        await cluster.clock.advance(1)
        assert await cluster.brokers[1].delete_records({T0: 2}, 1000) == {T0: LowWatermark(0, 2)}
        assert [cluster.at(broker).log.start_offset for broker in (1, 2, 3)] == [2, 2, 2]
        assert (await cluster.consume(1, 1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await cluster.brokers[1].delete_records({T0: -1}, 1000) == {T0: LowWatermark(0, 4)}
        cluster.cut.add((2, 1))
        await cluster.produce(1, "y", acks=1)
        beyond = await cluster.brokers[1].delete_records({T0: 5}, 1000)
        assert beyond == {T0: LowWatermark(ErrorCode.OFFSET_OUT_OF_RANGE)}
        await cluster.close()

    run(scenario())


def test_delete_records_waits_for_absent_replica(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "x")
        await cluster.clock.advance(1)
        cluster.cut.add((2, 1))
        task = asyncio.create_task(cluster.brokers[1].delete_records({T0: 1}, 2000))
        await cluster.clock.advance(1)
        assert not task.done()
        await cluster.clock.advance(2)
        assert await task == {T0: LowWatermark(ErrorCode.REQUEST_TIMED_OUT)}
        await cluster.close()

    run(scenario())


def test_delete_records_refuses_invalid_requests(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.log_config = LogConfig(cleanup_delete=False, cleanup_compact=True)
        cluster.elect(1, is_new=True)
        await settle()
        delete = cluster.brokers[1].delete_records
        assert await delete({T0: 0}, 10) == {T0: LowWatermark(ErrorCode.POLICY_VIOLATION)}
        assert await delete({NOWHERE: 0}, 10) == {NOWHERE: LowWatermark(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        assert await cluster.brokers[2].delete_records({T0: 0}, 10) == {
            T0: LowWatermark(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        }
        assert await delete({T0: -2}, 10) == {T0: LowWatermark(ErrorCode.OFFSET_OUT_OF_RANGE)}
        await cluster.close()

    run(scenario())
