"""Reassignments through the znode, brokers that die and return meanwhile, and a failing partition."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.controller import ControllerStep, ReassignmentTarget, delete_topic
from restow.cluster.controller.replica_states import ReplicaStates
from restow.cluster.controller.states import ReplicaState
from restow.cluster.store.znodes import ReassignPartitions
from restow.model import ReplicaAssignment, TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.controller.moves import (
    T0,
    alter,
    ask_by_node,
    assignment,
    change_isr,
    finish,
    moving_cluster,
    request_is_gone,
    turns,
)

if TYPE_CHECKING:
    from tests.unit.controller.fake_cluster import FakeCluster

U0 = TopicPartition("u", 0)
MISSING = TopicPartition("t", 7)


def test_request_znode_is_removed_when_its_reassignments_are_done() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, watcher):
            await cluster.create("u", {0: (0, 1)})
            await cluster.settled()
            await ask_by_node(cluster, t=(1, 2), u=(1, 3))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            await change_isr(cluster, joins=(2,))
            await cluster.until(lambda: "B8" in watcher.labels())
            left = ReassignPartitions.decode((await cluster.store.get(ReassignPartitions.PATH)).data)
            assert left.targets == {U0: (1, 3)}
            assert watcher.labels().count("A1") == 1
            await finish(cluster)
            assert watcher.labels().count("A1") == 1
            assert await assignment(cluster, U0) == ReplicaAssignment((1, 3))

    asyncio.run(run())


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"\xff", b'{"version":9,"partitions":[]}', b'{"version":1}'], ids=repr
)
def test_invalid_request_znode_is_removed(junk: bytes) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, _):
            await cluster.store.create(ReassignPartitions.PATH, junk)
            await cluster.until(lambda: request_is_gone(cluster))
            await ask_by_node(cluster, t=(2, 1))
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((2, 1))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("partition", "target"),
    [(T0, ()), (T0, (1, 1)), (T0, (-1,)), (T0, (8, 9)), (MISSING, (0, 1)), (TopicPartition("x", 0), (0,))],
    ids=["empty", "duplicate", "negative", "all added dead", "no such partition", "no such topic"],
)
def test_refused_entry_is_removed_from_request_znode(
    partition: TopicPartition, target: tuple[int, ...]
) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, _):
            await cluster.create("u", {0: (0, 1)})
            await cluster.settled()
            wanted = {partition: target, U0: (2, 1)}
            await cluster.store.create(ReassignPartitions.PATH, ReassignPartitions(wanted).encode())
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((0, 1))
            assert await assignment(cluster, U0) == ReplicaAssignment((2, 1))

    asyncio.run(run())


def test_request_znode_accepts_dead_brokers_if_one_added_broker_is_alive() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, watcher):
            await cluster.stop_broker(3)
            await cluster.until(lambda: 3 not in cluster.brokers[0].live_brokers)
            await ask_by_node(cluster, t=(2, 3))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            await change_isr(cluster, joins=(2,))
            await turns()
            assert "B1" not in watcher.labels()
            await cluster.start_broker(3)
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((2, 3))

    asyncio.run(run())


def test_topic_being_deleted_is_removed_from_request_znode() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.stop_broker(1)
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            await ask_by_node(cluster, t=(0, 2))
            await cluster.until(lambda: request_is_gone(cluster))

    asyncio.run(run())


# Brokers that die and return


def test_reassignment_continues_when_target_broker_returns() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (0, 2))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            await cluster.stop_broker(2)
            await cluster.until(lambda: 2 not in cluster.brokers[0].live_brokers)
            assert await controller.list_reassignments(None)
            await cluster.start_broker(2, keep=False)
            await cluster.until(lambda: watcher.labels().count("A2") == 2)
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((0, 2))

    asyncio.run(run())


def test_reassignment_finishes_when_removed_replica_is_on_dead_broker() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.stop_broker(1)
            await cluster.until(lambda: 1 not in cluster.brokers[0].live_brokers)
            await alter(controller, (0, 2))
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((0, 2))
            assert (await cluster.state("t", 0)).isr == (0, 2)

    asyncio.run(run())


def test_kafka_10314_reassignment_waits_for_target_with_failed_log_dir() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            cluster.brokers[2].failed.add(T0)
            await alter(controller, (0, 2))
            await cluster.until(lambda: 2 in cluster.brokers[0].metadata[T0].offline_replicas)
            assert watcher.labels()[-1] == "A2"
            assert T0 in cluster.brokers[1].hosted
            assert await alter(controller, (0, 3)) is None
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((0, 3))

    asyncio.run(run())


# A failing partition


def test_exception_on_one_partition_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("u", {0: (0, 1)})
            await cluster.settled()
            real = ReplicaStates.move

            async def fail(self: ReplicaStates, replicas: Any, target: ReplicaState) -> Any:
                found = list(replicas)
                if target is ReplicaState.NEW and any(each.partition == T0 for each in found):
                    raise ValueError("this one never works")
                return await real(self, found, target)

            monkeypatch.setattr(ReplicaStates, "move", fail)
            outcomes = await controller.alter_reassignments(
                {T0: ReassignmentTarget((0, 2)), U0: ReassignmentTarget((0, 2))}
            )
            assert outcomes[U0] is None
            refusal = outcomes[T0]
            assert refusal is not None
            assert refusal.code is ErrorCode.UNKNOWN_SERVER_ERROR
            await cluster.until(lambda: U0 in cluster.brokers[2].hosted)
            await change_isr(cluster, U0, joins=(2,))
            await cluster.until(lambda: moved(cluster, U0))
            assert controller.is_active
            monkeypatch.undo()
            assert await alter(controller, (0, 2)) is None
            await finish(cluster)

    async def moved(cluster: FakeCluster, partition: TopicPartition) -> bool:
        return not (await assignment(cluster, partition)).is_moving

    asyncio.run(run())


def test_steps_of_many_partitions_run_together() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await cluster.create("many", dict.fromkeys(range(50), (0, 1)))
            await cluster.settled()
            watcher.passed.clear()
            many = [TopicPartition("many", number) for number in range(50)]
            outcomes = await controller.alter_reassignments(
                {each: ReassignmentTarget((1, 2)) for each in many}
            )
            assert set(outcomes.values()) == {None}
            assert watcher.labels() == ["U0", "U1", "U2", "A1", "A2"]
            stat = await cluster.store.exists("/brokers/topics/many")
            assert stat is not None
            assert stat.version == 1
            await finish(cluster)
            assert watcher.passed.count(ControllerStep.B6) < 50

    asyncio.run(run())
