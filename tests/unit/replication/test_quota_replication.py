"""Replicas that catch up under a quota: their rate, and which are throttled; on a manual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.cluster.quotas import ReplicaQuota, SlidingQuota
from restow.cluster.replication import Throttles
from restow.model import TopicPartition
from restow.wire.records import Record, build
from tests.clock import settle
from tests.unit.replication.replicas import T0, Cluster, run

if TYPE_CHECKING:
    from pathlib import Path

T1 = TopicPartition("t", 1)
RATE = 100_000
BATCH = build([Record(0, 1, None, bytes(4_000))])


class Bench:
    """A leader 1 with data to copy, a follower 2 and perhaps a 3, and quotas that tests set."""

    def __init__(self, path: Path, brokers: int = 2) -> None:
        self.cluster = Cluster(path, 0)
        self.listed = {T0}
        for broker in range(1, brokers + 1):
            self.cluster.throttles[broker] = Throttles(self._quota(), self._quota())
            self.cluster.start(broker)

    def _quota(self) -> ReplicaQuota:
        return ReplicaQuota(
            self.cluster.clock, lambda: SlidingQuota(0), lambda partition: partition in self.listed
        )

    def limit(self, broker: int, side: str, bytes_per_s: int) -> None:
        quota = getattr(self.cluster.throttles[broker], side)
        assert isinstance(quota, ReplicaQuota)
        quota.limit(bytes_per_s)

    async def fill(self, count: int, partition: TopicPartition = T0) -> None:
        """Append that many batches on the leader alone."""
        self.cluster.elect(1, is_new=True, replicas=(1,), isr=(1,), topic_partition=partition)
        for _ in range(count):
            await self.cluster.brokers[1].append({partition: BATCH}, acks=1, timeout_ms=1000)

    def add_replica(self, broker: int, partition: TopicPartition = T0) -> None:
        """Start a reassignment: the broker follows, out of sync at first."""
        isr = self.cluster.states.isr[partition]
        replicas = (*self.cluster.replicas[partition], broker)
        self.cluster.elect(1, replicas=replicas, isr=isr, topic_partition=partition)

    def copied(self, broker: int, partition: TopicPartition = T0) -> int:
        return self.cluster.at(broker, partition).log.size_bytes


@pytest.mark.parametrize("sides", [("leader",), ("follower",), ("leader", "follower")])
def test_replica_catches_up_at_the_configured_rate(tmp_path: Path, sides: tuple[str, ...]) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        await bench.fill(400)
        for side in sides:
            bench.limit(1 if side == "leader" else 2, side, RATE)
        bench.add_replica(2)
        for second in range(1, 15):
            await bench.cluster.clock.advance(1.0)
            assert bench.copied(2) == pytest.approx(RATE * second, abs=0.15 * RATE)
            assert bench.cluster.at(1).isr == (1,)
        await bench.cluster.clock.advance(3.0)
        assert bench.copied(2) == 400 * len(BATCH)
        await bench.cluster.clock.advance(1.0)
        assert bench.cluster.at(1).isr == (1, 2)
        await bench.cluster.close()

    run(scenario())


def test_throttled_follower_does_not_fetch_repeatedly(tmp_path: Path) -> None:
    async def scenario() -> None:
        for number, (broker, side) in enumerate(((1, "leader"), (2, "follower"))):
            bench = Bench(tmp_path / str(number))
            await bench.fill(200)
            bench.limit(broker, side, RATE // 10)
            bench.add_replica(2)
            await bench.cluster.clock.advance(10.0)
            assert bench.copied(2) < 30 * len(BATCH)
            assert len(bench.cluster.asked) < 150
            await bench.cluster.close()

    run(scenario())


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_unlisted_partitions_are_not_throttled(tmp_path: Path, side: str) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        await bench.fill(300)
        await bench.fill(300, T1)
        bench.limit(1 if side == "leader" else 2, side, RATE)
        bench.add_replica(2)
        bench.add_replica(2, T1)
        await bench.cluster.clock.advance(1.0)
        assert bench.copied(2, T1) == 300 * len(BATCH)
        assert bench.copied(2) <= 1.2 * RATE
        await bench.cluster.close()

    run(scenario())


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_in_sync_replica_is_not_throttled(tmp_path: Path, side: str) -> None:
    """3 catches up under the quota, and uses it up; 2 is in sync and has everything acknowledged."""

    async def scenario() -> None:
        bench = Bench(tmp_path, 3)
        cluster = bench.cluster
        cluster.elect(1, is_new=True, replicas=(1, 2))
        await settle()
        for _ in range(300):
            await cluster.brokers[1].append({T0: BATCH}, acks=1, timeout_ms=1000)
        await cluster.clock.advance(1.0)
        assert bench.copied(2) == 300 * len(BATCH)
        for broker in (1,) if side == "leader" else (2, 3):
            bench.limit(broker, side, RATE)
        bench.add_replica(3)
        await cluster.clock.advance(2.0)
        for _ in range(20):
            done = await cluster.brokers[1].append({T0: BATCH}, acks=-1, timeout_ms=100)
            assert done[T0].error_code == 0
        assert bench.copied(2) == 320 * len(BATCH)
        assert bench.copied(3) <= 2.5 * RATE
        assert cluster.at(1).isr == (1, 2)
        await cluster.close()

    run(scenario())


def test_consumers_are_not_throttled(tmp_path: Path) -> None:
    """Not even by the leader's quota (KAFKA-13614)."""

    async def scenario() -> None:
        bench = Bench(tmp_path)
        await bench.fill(300)
        bench.limit(1, "leader", RATE)
        bench.add_replica(2)
        await bench.cluster.clock.advance(0.5)
        size = len(BATCH)
        for offset in range(300):
            found = await bench.cluster.consume(1, offset, max_bytes=size)
            assert len(found.records or b"") == size
        await bench.cluster.close()

    run(scenario())


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_changed_or_lifted_quota_takes_effect_at_once(tmp_path: Path, side: str) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        await bench.fill(2000)
        broker = 1 if side == "leader" else 2
        bench.limit(broker, side, 1)
        bench.add_replica(2)
        await bench.cluster.clock.advance(20.0)
        assert bench.copied(2) <= len(BATCH)
        bench.limit(broker, side, RATE)
        before = bench.copied(2)
        await bench.cluster.clock.advance(10.0)
        assert bench.copied(2) - before == pytest.approx(10 * RATE, rel=0.1)
        bench.listed.clear()
        await bench.cluster.clock.advance(1.0)
        assert bench.copied(2) == 2000 * len(BATCH)
        await bench.cluster.close()

    run(scenario())


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_partitions_share_one_quota_evenly(tmp_path: Path, side: str) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        partitions = [TopicPartition("t", number) for number in range(6)]
        bench.listed.update(partitions)
        for partition in partitions:
            await bench.fill(150, partition)
        bench.limit(1 if side == "leader" else 2, side, 3 * RATE)
        for partition in partitions:
            bench.add_replica(2, partition)
        await bench.cluster.clock.advance(5.0)
        copied = [bench.copied(2, partition) for partition in partitions]
        assert sum(copied) == pytest.approx(15 * RATE, rel=0.1)
        assert max(copied) - min(copied) <= RATE
        await bench.cluster.close()

    run(scenario())


def test_new_epoch_of_throttled_replica_causes_no_repeated_responses(tmp_path: Path) -> None:
    """The leader must not continue with the fetch of the previous epoch."""

    async def scenario() -> None:
        bench = Bench(tmp_path)
        await bench.fill(100)
        bench.limit(2, "follower", 1000)
        bench.add_replica(2)
        await bench.fill(1, T1)
        bench.add_replica(2, T1)
        await bench.cluster.clock.advance(0.2)
        bench.cluster.elect(1, isr=(1,))
        await bench.cluster.clock.advance(2.0)
        assert len(bench.cluster.asked) < 40
        bench.limit(2, "follower", 2**63 - 1)
        await bench.cluster.clock.advance(2.0)
        assert bench.copied(2) == 100 * len(BATCH)
        await bench.cluster.close()

    run(scenario())


def test_in_sync_replica_is_not_throttled_at_a_new_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, 3)
        cluster = bench.cluster
        await bench.fill(100)
        bench.add_replica(2)
        await cluster.clock.advance(2.0)
        assert cluster.at(1).isr == (1, 2)
        for partition in (T0, T1):
            bench.listed.add(partition)
        bench.limit(2, "follower", 1000)
        await bench.fill(100, T1)
        bench.add_replica(2, T1)
        await cluster.clock.advance(1.0)
        cluster.elect(1, isr=(1, 2))
        await cluster.clock.advance(0.1)
        done = await cluster.brokers[1].append({T0: BATCH}, acks=-1, timeout_ms=100)
        assert done[T0].error_code == 0
        assert bench.copied(2, T1) < 10 * len(BATCH)
        await cluster.close()

    run(scenario())


def test_throttled_replica_that_stops_following_leaves_no_timers(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        await bench.fill(100)
        bench.limit(2, "follower", 1000)
        bench.add_replica(2)
        await bench.cluster.clock.advance(0.2)
        assert bench.cluster.stop_replica(2, delete=True) == 0
        await bench.cluster.clock.advance(2.0)
        assert bench.cluster.brokers[2].partition(T0) is None
        await bench.cluster.close()

    run(scenario())
