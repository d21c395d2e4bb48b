"""Appends on several brokers: acknowledgement, the high watermark, and min.insync.replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build
from tests.clock import settle
from tests.unit.replication.replicas import T0, Cluster, batch, run

if TYPE_CHECKING:
    from pathlib import Path


def test_leader_without_followers_acknowledges_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        assert cluster.elect(1, is_new=True) == {1: 0}
        first = await cluster.produce(1, "a", "b")
        second = await cluster.produce(1, "c")
        assert (first.error_code, first.base_offset) == (0, 0)
        assert (second.error_code, second.base_offset) == (0, 2)
        found = await cluster.consume(1, 0)
        assert found.high_watermark == 3
        assert found.records == cluster.bytes_at(1)
        await cluster.close()

    run(scenario())


def test_acks_all_waits_for_the_isr_and_logs_are_equal(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        waiting = cluster.produce(1, "a", "b")
        await settle()
        assert waiting.done()
        assert (await waiting).error_code == 0
        assert cluster.at(1).log.high_watermark == 2
        assert cluster.bytes_at(1) == cluster.bytes_at(2) == cluster.bytes_at(3)
        await cluster.clock.advance(1)
        assert cluster.at(2).log.high_watermark == cluster.at(3).log.high_watermark == 2
        await cluster.close()

    run(scenario())


def test_leader_does_not_acknowledge_acks_all_while_followers_are_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.cut.add((2, 1))
        cluster.elect(1, is_new=True)
        await settle()
        assert (await cluster.produce(1, "a", acks=1)).error_code == 0
        assert (await cluster.produce(1, "b", acks=0)).error_code == 0
        waiting = cluster.produce(1, "c", timeout_ms=3000)
        await cluster.clock.advance(2.9)
        assert not waiting.done()
        await cluster.clock.advance(0.2)
        assert (await waiting).error_code == ErrorCode.REQUEST_TIMED_OUT
        assert cluster.at(1).log.high_watermark == 0
        found = await cluster.consume(1, 0)
        assert (found.error_code, found.records, found.high_watermark) == (0, b"", 0)
        assert (await cluster.consume(1, 0, replica_id=-2)).records == cluster.bytes_at(1)
        await cluster.close()

    run(scenario())


def test_append_is_refused_with_too_few_in_sync_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, min_isr=2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut |= {(2, 1), (3, 1)}
        waiting = cluster.produce(1, "written before anybody knew", timeout_ms=60_000)
        await cluster.clock.advance(12)
        assert cluster.at(1).isr == (1,)
        assert (await waiting).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        end = cluster.at(1).log.end_offset
        assert (await cluster.produce(1, "refused")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert cluster.at(1).log.end_offset == end
        assert (await cluster.produce(1, "not asked for", acks=1)).error_code == 0
        await cluster.close()

    run(scenario())


def test_min_insync_replicas_is_capped_at_the_replica_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1, min_isr=2)
        cluster.elect(1, is_new=True)
        assert (await cluster.produce(1, "a")).error_code == 0
        await cluster.close()

    run(scenario())


def test_invalid_append_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        unknown = TopicPartition("elsewhere", 0)
        assert (await cluster.produce(2, "a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (
            await cluster.produce(1, "a", topic_partition=unknown)
        ).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        damaged = bytearray(batch("a"))
        damaged[-1] ^= 1
        results = await cluster.brokers[1].append(
            {T0: bytes(damaged), unknown: batch("b")}, acks=-1, timeout_ms=10
        )
        assert results[T0].error_code == ErrorCode.CORRUPT_MESSAGE
        assert results[T0].error_message
        assert results[unknown].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert cluster.at(1).log.end_offset == 0
        await cluster.close()

    run(scenario())


@pytest.mark.parametrize("how", ["follow", "stop", "delete", "shut down"])
def test_waiting_appends_fail_when_the_leader_resigns(tmp_path: Path, how: str) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        produced = cluster.produce(1, "a", timeout_ms=60_000)
        fetched = asyncio.create_task(cluster.consume(1, 0, max_wait_ms=60_000))
        await settle()
        assert not produced.done()
        if how == "follow":
            cluster.elect(2)
        elif how == "shut down":
            await cluster.stop(1)
        else:
            assert cluster.stop_replica(1, delete=how == "delete") == 0
        await settle()
        assert produced.done()
        assert (await produced).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert fetched.done()
        assert (await fetched).error_code
        await cluster.close()

    run(scenario())


def test_duplicate_is_acknowledged_with_the_original(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        once = build([Record(0, 1, None, b"a")], producer_id=5, producer_epoch=0, base_sequence=0)
        first, again = (
            asyncio.create_task(cluster.brokers[1].append({T0: once}, acks=-1, timeout_ms=60_000))
            for _ in range(2)
        )
        await cluster.clock.advance(0.2)
        assert not first.done()
        assert not again.done()
        cluster.cut.clear()
        await cluster.clock.advance(2)
        assert (await first)[T0].base_offset == (await again)[T0].base_offset == 0
        assert (await again)[T0].error_code == 0
        assert cluster.at(1).log.end_offset == 1
        await cluster.close()

    run(scenario())


def test_request_for_many_partitions_waits_for_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        other = TopicPartition("u", 0)
        cluster.elect(1, is_new=True)
        cluster.elect(1, is_new=True, topic_partition=other, replicas=[1])
        await settle()
        cluster.cut.add((2, 1))
        task = asyncio.create_task(
            cluster.brokers[1].append({T0: batch("a"), other: batch("b")}, acks=-1, timeout_ms=1000)
        )
        await settle()
        assert not task.done()
        await cluster.clock.advance(1.1)
        results = await task
        assert results[T0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert (results[other].error_code, results[other].base_offset) == (0, 0)
        await cluster.close()

    run(scenario())


def test_acknowledged_records_survive_a_leader_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        assert (await cluster.produce(1, "a")).error_code == 0
        await cluster.stop(1)
        cluster.elect(2, isr=[2, 3])
        await settle()
        assert (await cluster.produce(2, "b")).base_offset == 1
        assert cluster.bytes_at(2) == cluster.bytes_at(3)
        assert (await cluster.consume(2, 0)).high_watermark == 2
        await cluster.close()

    run(scenario())
