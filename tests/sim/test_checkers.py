"""The checkers find what they are for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.store.operations import Create, Set
from restow.cluster.store.znodes import PartitionStateZNode
from restow.model import TopicPartition
from restow.sim.checkers import Invariants
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.health import unhealthy
from restow.sim.loop import run
from restow.sim.record import EventRecord
from restow.sim.scenario import Scenario
from restow.sim.states import state_of
from restow.sim.workloads import WorkContext
from restow.sim.workloads.producing import TOPIC, Producing

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.replication.partition import HostedPartition

PARTITION = TopicPartition(TOPIC, 0)


def found_after(harm: Callable[[SimCluster, Invariants], None]) -> list[str]:
    """Return what the checkers say of a healthy cluster with one partition after this change."""

    async def main() -> list[str]:
        settings = SimulatedClusterSettings(properties={"min.insync.replicas": "2"})
        async with SimCluster(3, settings) as cluster:
            invariants = Invariants(cluster)
            scenario = Scenario(partitions=1, records_per_s=10)
            producing = Producing(
                WorkContext(scenario=scenario, cluster=cluster, committed=invariants.committed, note=print)
            )
            await producing.start()
            await producing.run(asyncio.get_running_loop().time() + 5)
            await producing.settle()
            await asyncio.sleep(5)
            assert [*invariants.check(), *unhealthy(cluster)] == []
            harm(cluster, invariants)
            return [*invariants.check(), *invariants.check_replicas(anew=True), *unhealthy(cluster)]

    return run(main())


def hosted(cluster: SimCluster, broker: int) -> HostedPartition:
    found = cluster.nodes[broker].broker.services.replicas.partition(PARTITION)
    assert found is not None
    return found


def leader_of(cluster: SimCluster) -> int:
    state = state_of(cluster.store.tree, PARTITION)
    assert state is not None
    return state.leader


def test_changed_committed_batch_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        node = cluster.nodes[(leader_of(cluster) + 1) % 3]
        path = f"{node.log_dirs[0]}/{PARTITION}/{0:020d}.log"
        data = bytearray(node.disk.read_bytes(path))
        data[-1] ^= 1
        file = node.disk.open(path)
        file.truncate(0)
        file.append(data)

    assert any("has another batch at offset" in each for each in found_after(harm))


def test_in_sync_replica_without_committed_records_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        log = hosted(cluster, (leader_of(cluster) + 1) % 3).log
        log.truncate_to(log.end_offset - 3)

    assert any("is in sync in epoch" in each for each in found_after(harm))


def test_acknowledged_record_that_no_log_has_is_found() -> None:
    def harm(cluster: SimCluster, invariants: Invariants) -> None:
        invariants.committed.acknowledge(*PARTITION, hosted(cluster, 0).log.end_offset + 1)

    assert any("is in sync in epoch" in each for each in found_after(harm))


def test_deleted_committed_records_are_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        hosted(cluster, 0).log.delete_records_before(3)

    assert any("but nobody deleted records" in each for each in found_after(harm))


def test_second_leader_of_an_epoch_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        other = hosted(cluster, (leader_of(cluster) + 1) % 3)
        other.lead(other.order._replace(leader=(leader_of(cluster) + 1) % 3))

    assert any("two leaders in epoch" in each for each in found_after(harm))


def test_leader_epoch_that_goes_back_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        state = PartitionStateZNode(leader=0, leader_epoch=-1, isr=(0, 1, 2), controller_epoch=1)
        cluster.store.transact([Set(PartitionStateZNode.path(*PARTITION), state.encode())], 0)

    assert any("leader epoch of orders-0 went back" in each for each in found_after(harm))


def test_stray_log_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        cluster.nodes[1].disk.make_directory(f"{cluster.nodes[1].log_dirs[0]}/old-7")

    assert found_after(harm) == ["broker 1 has a stray log /data/1/log-0/old-7"]


def test_topic_without_state_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        node = cluster.store.tree.get(f"/brokers/topics/{TOPIC}")
        cluster.store.transact([Create("/brokers/topics/forgotten", node.data)], 0)

    assert "forgotten-0 has no state" in found_after(harm)


def test_exception_in_a_callback_is_a_violation() -> None:
    async def main() -> tuple[str, ...]:
        journal = EventRecord()
        with journal.listening():
            asyncio.get_running_loop().call_soon(int, "nothing")
            await asyncio.sleep(1)
        return journal.violations

    (violation,) = run(main())
    assert "ValueError" in violation
