"""Replicas that move between log dirs during reads and writes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from restow.cluster.quotas import Quota, SlidingQuota
from restow.cluster.replication.log_dir_moves import LogDirMoves
from restow.cluster.replication.values import PartitionRefused
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build
from tests.clock import settle
from tests.unit.log.making import FaultyDisk, full_under
from tests.unit.replication.replicas import T0, Cluster, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BATCH = build([Record(0, 1, None, bytes(4_000))])


class Bench:
    """Broker 1 leads, 2 follows; each has two log dirs and runs its moves."""

    def __init__(self, path: Path, disk: FaultyDisk | None = None) -> None:
        self.cluster = Cluster(path, 2, log_dirs=2, disk=disk)
        self.moves: dict[int, LogDirMoves] = {}
        self.quotas: dict[int, Quota] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        for broker in (1, 2):
            self.run(broker)

    def run(self, broker: int) -> None:
        clock = self.cluster.clock
        quota = self.quotas[broker] = Quota(clock, lambda: SlidingQuota(0))
        moves = self.moves[broker] = LogDirMoves(self.cluster.brokers[broker], clock, quota)
        self._tasks[broker] = asyncio.get_running_loop().create_task(moves.run())

    async def stop(self, broker: int, *, cleanly: bool) -> None:
        await self._end(broker)
        await self.cluster.stop(broker, cleanly=cleanly)

    async def _end(self, broker: int) -> None:
        task = self._tasks.pop(broker)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        for broker in tuple(self._tasks):
            await self._end(broker)
        await self.cluster.close()

    def ask(self, broker: int, number: int, partition: TopicPartition = T0) -> ErrorCode:
        return self.ask_path(broker, self.cluster.paths(broker)[number], partition)

    def ask_path(self, broker: int, path: str, partition: TopicPartition = T0) -> ErrorCode:
        try:
            self.moves[broker].ask(partition, path)
        except PartitionRefused as refused:
            return refused.code
        return ErrorCode.NONE

    def home(self, broker: int) -> int:
        path = self.cluster.brokers[broker].logs.directory_of(T0).path
        return self.cluster.paths(broker).index(path)

    def is_moving(self, broker: int) -> bool:
        return self.cluster.brokers[broker].logs.futures.partitions == (T0,)

    async def fill(self, count: int) -> None:
        for _ in range(count):
            await self.cluster.brokers[1].append({T0: BATCH}, acks=1, timeout_ms=1000)
        await settle()

    async def until_moved(self, broker: int) -> None:
        for _ in range(200):
            if not self.is_moving(broker):
                return
            await self.cluster.clock.advance(0.5)
        raise AssertionError("the move does not end")

    def folders(self, broker: int) -> list[list[str]]:
        for _ in self.cluster.brokers[broker].logs.tend():
            pass
        return [
            sorted(each.name for each in Path(path).iterdir() if each.is_dir())
            for path in self.cluster.paths(broker)
        ]


@asynccontextmanager
async def bench(path: Path, disk: FaultyDisk | None = None) -> AsyncIterator[Bench]:
    made = Bench(path, disk)
    made.cluster.elect(1, is_new=True)
    await settle()
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("broker", [1, 2])
def test_replica_moves_during_writes_and_reads(tmp_path: Path, broker: int) -> None:
    """Writes and fetches race with the end of the move, too (KAFKA-9750)."""

    async def scenario() -> None:
        async with bench(tmp_path) as it:
            await it.fill(600)
            assert it.home(broker) == 0
            it.quotas[broker].limit(1_000_000)
            assert it.ask(broker, 1) is ErrorCode.NONE
            written = 600
            while it.is_moving(broker):
                done = await it.cluster.brokers[1].append({T0: BATCH}, acks=1, timeout_ms=1000)
                assert done[T0].error_code == 0
                assert done[T0].base_offset == written
                written += 1
                found = await it.cluster.consume(1, written % 600)
                assert found.error_code == 0
                await it.cluster.clock.advance(0.02)
            assert written > 650
            assert it.home(broker) == 1
            await it.fill(3)
            await it.cluster.clock.advance(1)
            assert it.cluster.bytes_at(2) == it.cluster.bytes_at(1)
            assert it.cluster.at(1).isr == (1, 2)
            assert it.folders(broker) == [[], ["t-0"]]

    run(scenario())


def test_move_keeps_to_its_rate(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as it:
            await it.fill(300)
            it.quotas[1].limit(100_000)
            assert it.ask(1, 1) is ErrorCode.NONE
            for second in range(1, 11):
                await it.cluster.clock.advance(1.0)
                future = it.cluster.brokers[1].logs.futures.get(T0)
                assert future is not None
                assert future.size_bytes == pytest.approx(100_000 * second, abs=15_000)
            it.quotas[1].limit(2**63 - 1)
            await it.cluster.clock.advance(1.0)
            await settle()
            assert it.home(1) == 1

    run(scenario())


def test_move_is_cancelled_or_redirected_by_a_new_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as it:
            await it.fill(300)
            it.quotas[1].limit(10_000)
            it.ask(1, 1)
            await it.cluster.clock.advance(2.0)
            assert it.is_moving(1)
            assert it.ask(1, 1) is ErrorCode.NONE
            grown = it.cluster.brokers[1].logs.futures.get(T0)
            assert grown is not None
            assert grown.end_offset > 0
            assert it.ask(1, 0) is ErrorCode.NONE
            assert not it.is_moving(1)
            assert it.folders(1) == [["t-0"], []]
            assert it.ask(1, 0) is ErrorCode.NONE
            assert it.home(1) == 0

    run(scenario())


def test_invalid_move_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as it:
            assert it.ask_path(1, "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
            assert it.ask_path(1, "relative/1-0") is ErrorCode.LOG_DIR_NOT_FOUND
            assert it.ask_path(1, "") is ErrorCode.LOG_DIR_NOT_FOUND
            absent = TopicPartition("absent", 0)
            assert it.ask(1, 1, absent) is ErrorCode.REPLICA_NOT_AVAILABLE
            assert it.ask(1, 1, TopicPartition("x" * 249, 0)) is ErrorCode.INVALID_TOPIC_EXCEPTION
            it.cluster.brokers[1].logs.directories[1].disk.fail("gone")
            assert it.ask(1, 1) is ErrorCode.KAFKA_STORAGE_ERROR
            assert it.home(1) == 0
            it.cluster.brokers[2].logs.directories[0].disk.fail("gone")
            assert it.ask(2, 1) is ErrorCode.KAFKA_STORAGE_ERROR

    run(scenario())


def test_future_replica_is_created_in_the_requested_log_dir(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as it:
            for number in range(1, 5):
                it.cluster.elect(1, is_new=True, topic_partition=TopicPartition("t", number))
            new = TopicPartition("u", 0)
            assert it.ask(1, 1, new) is ErrorCode.REPLICA_NOT_AVAILABLE
            assert it.ask(1, 0, new) is ErrorCode.REPLICA_NOT_AVAILABLE
            it.cluster.elect(1, is_new=True, topic_partition=new)
            logs = it.cluster.brokers[1].logs
            assert logs.directory_of(new) is logs.directories[0]
            assert it.ask(1, 0, new) is ErrorCode.NONE

    run(scenario())


@pytest.mark.parametrize("cleanly", [True, False])
def test_move_continues_after_a_restart(tmp_path: Path, cleanly: bool) -> None:
    """The copy waits until the controller has confirmed the replica."""

    async def scenario() -> None:
        async with bench(tmp_path) as it:
            await it.fill(300)
            it.quotas[2].limit(100_000)
            it.ask(2, 1)
            await it.cluster.clock.advance(2.0)
            await it.stop(2, cleanly=cleanly)
            it.cluster.start(2)
            it.run(2)
            found = it.cluster.brokers[2].logs.futures.get(T0)
            assert found is not None
            end = found.end_offset
            assert end >= 40
            await it.cluster.clock.advance(5.0)
            assert found.end_offset == end
            it.cluster.tell(2)
            await it.until_moved(2)
            assert it.home(2) == 1
            await it.cluster.clock.advance(1.0)
            assert it.cluster.bytes_at(2) == it.cluster.bytes_at(1)
            assert it.folders(2) == [[], ["t-0"]]

    run(scenario())


def test_leader_change_truncates_log_and_copy(tmp_path: Path) -> None:
    """Records that only the old leader had are truncated (KAFKA-9654)."""

    async def scenario() -> None:
        async with bench(tmp_path) as it:
            await it.fill(100)
            it.quotas[1].limit(400_000)
            it.cluster.cut.add((2, 1))
            await it.fill(100)
            it.ask(1, 1)
            await it.cluster.clock.advance(1.9)
            future = it.cluster.brokers[1].logs.futures.get(T0)
            assert future is not None
            assert 100 < future.end_offset < 200
            it.cluster.elect(2, isr=(1, 2))
            await it.cluster.brokers[2].append({T0: BATCH}, acks=1, timeout_ms=1000)
            it.cluster.cut.clear()
            await it.cluster.clock.advance(1.0)
            await it.until_moved(1)
            assert it.home(1) == 1
            await it.cluster.clock.advance(1.0)
            assert it.cluster.bytes_at(1) == it.cluster.bytes_at(2)
            assert it.cluster.at(1).log.end_offset == 101

    run(scenario())


def test_deleting_the_replica_ends_its_move(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as it:
            await it.fill(100)
            it.quotas[2].limit(1000)
            it.ask(2, 1)
            await it.cluster.clock.advance(1.0)
            assert it.cluster.stop_replica(2, delete=True) == 0
            await it.cluster.clock.advance(1.0)
            assert it.folders(2) == [[], []]

    run(scenario())


def test_failure_of_the_new_disk_ends_the_move(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FaultyDisk()
        async with bench(tmp_path, disk) as it:
            await it.fill(100)
            it.quotas[1].limit(10_000)
            it.ask(1, 1)
            await it.cluster.clock.advance(1.0)
            disk.fault = full_under(it.cluster.paths(1)[1])
            await it.cluster.clock.advance(5.0)
            assert not it.is_moving(1)
            assert it.home(1) == 0
            assert it.cluster.at(1).is_leader
            await it.fill(1)
            assert it.cluster.at(1).log.end_offset == 101

    run(scenario())


def test_failure_of_the_old_disk_takes_the_replica_offline(tmp_path: Path) -> None:
    """An incomplete copy is not the replica (KAFKA-16234)."""

    async def scenario() -> None:
        disk = FaultyDisk()
        async with bench(tmp_path, disk) as it:
            await it.fill(100)
            it.quotas[2].limit(10_000)
            it.ask(2, 1)
            await it.cluster.clock.advance(1.0)
            disk.fault = full_under(it.cluster.paths(2)[0])
            await it.fill(1)
            await it.cluster.clock.advance(5.0)
            assert it.cluster.brokers[2].find(T0) is not None
            assert it.ask(2, 1) is ErrorCode.KAFKA_STORAGE_ERROR
            assert it.cluster.brokers[2].logs.get(T0) is None
            disk.fault = lambda name, path: None

    run(scenario())
