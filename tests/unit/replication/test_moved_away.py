"""Replicas that a reassignment removes: how long they count, and that they do not return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.error_codes import ErrorCode
from tests.clock import settle
from tests.unit.replication.replicas import LAG_MAX_S, T0, Cluster, run

if TYPE_CHECKING:
    from pathlib import Path


def test_removed_replica_counts_while_it_is_in_the_isr(tmp_path: Path) -> None:
    """Otherwise acknowledged records would be lost if it were elected."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.elect(1, replicas=[1, 2], isr=[1, 2, 3], to=[1, 2])
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await settle()
        assert not waiting.done()
        cluster.elect(1, replicas=[1, 2], isr=[1, 2], to=[1, 2])
        await settle()
        assert (await waiting).error_code == 0
        await cluster.close()

    run(scenario())


def test_kafka_9672_removed_replica_never_rejoins_the_isr(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.elect(1, replicas=[1, 2], isr=[1, 2, 3])
        cluster.tell(3)
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        cluster.cut.add((3, 1))
        await cluster.clock.advance(LAG_MAX_S + 2)
        cluster.cut.clear()
        await cluster.clock.advance(5)
        assert (await waiting).error_code == 0
        assert cluster.at(1).isr == (1, 2)
        assert cluster.states.writes == [(1, 2)]
        await cluster.close()

    run(scenario())


def test_kafka_9198_waiting_requests_fail_at_removed_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await settle()
        assert not waiting.done()
        assert cluster.stop_replica(1, delete=True) == 0
        assert (await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await cluster.close()

    run(scenario())


def test_kafka_10371_removed_follower_stops_fetching(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.elect(1, replicas=[1, 2], isr=[1, 2], to=[1, 2])
        assert cluster.stop_replica(3, delete=True) == 0
        cluster.asked.clear()
        produced = cluster.produce(1, "a")
        await cluster.clock.advance(2)
        assert (await produced).error_code == 0
        assert not [spec for (source, _), spec in cluster.asked if source == 3 and T0 in spec.partitions]
        assert cluster.brokers[3].partition(T0) is None
        assert cluster.brokers[3].logs.get(T0) is None
        await cluster.close()

    run(scenario())
