"""The checkers find what they are for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.store.operations import Create, Set
from restow.cluster.store.znodes import PartitionStateZNode
from restow.model import TopicPartition
from restow.sim.checkers import Invariants
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.health import unhealthy
from restow.sim.loop import run
from restow.sim.record import EventRecord
from restow.sim.scenario import Scenario
from restow.sim.states import state_of
from restow.sim.workloads import WorkContext
from restow.sim.workloads.producing import TOPIC, Producing
from restow.wire.between_brokers import UpdateMetadataRequest
from restow.wire.records import Record, build

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.replication.partition import HostedPartition
    from restow.wire.messages import Message

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


def test_leader_that_is_taken_away_without_need_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        before = state_of(cluster.store.tree, PARTITION)
        assert before is not None
        state = replace(before, leader=-1, leader_epoch=before.leader_epoch + 1)
        cluster.store.transact([Set(PartitionStateZNode.path(*PARTITION), state.encode())], 0)

    assert any("orders-0 lost its leader" in each for each in found_after(harm))


def test_replica_whose_leader_epoch_goes_back_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        replica = hosted(cluster, leader_of(cluster))
        replica.order = replica.order._replace(leader_epoch=replica.leader_epoch - 1)

    assert any("the leader epoch went back from 0 to -1" in each for each in found_after(harm))


def test_leader_that_takes_records_with_too_small_an_isr_is_found() -> None:
    def harm(cluster: SimCluster, invariants: Invariants) -> None:
        leader = hosted(cluster, leader_of(cluster))
        leader.order = leader.order._replace(isr=(leader_of(cluster),))
        assert list(invariants.check_replicas()) == []
        leader.append(build([Record(0, 0, None, b"alone")]), acks=1)

    assert any("is smaller than min.insync.replicas" in each for each in found_after(harm))


def test_high_watermark_beyond_a_loaded_log_is_found() -> None:
    def harm(cluster: SimCluster, _: Invariants) -> None:
        node = cluster.nodes[0]
        log = hosted(cluster, 0).log
        log._high_watermark = log.end_offset + 1
        assert node.on_started is not None
        node.on_started(node)
        log.high_watermark = log.end_offset

    assert any("is not within" in each for each in found_after(harm))


def obeyed_after(change: Callable[[Message], None]) -> list[str]:
    """Return what the checkers say when a broker obeys a second request, which this changes."""

    async def main() -> list[str]:
        async with SimCluster(1) as cluster:
            invariants = Invariants(cluster)
            requests = cluster.nodes[0].broker.services.controller_requests
            request = UpdateMetadataRequest(
                controller_id=0,
                controller_epoch=requests.controller_epoch,
                broker_epoch=requests.broker_epoch,
                topic_states=[],
                live_brokers=[],
            )
            client = SimClient("controller", cluster.network, NodeClock())
            assert (await client.ask(request, 0, version=7)).error_code == 0
            assert list(invariants.check()) == []
            change(request)
            requests.controller_epoch, requests.broker_epoch = request.controller_epoch, request.broker_epoch
            assert (await client.ask(request, 0, version=7)).error_code == 0
            client.close()
            return list(invariants.check())

    return run(main())


def test_broker_that_obeys_an_earlier_controller_is_found() -> None:
    def change(request: Message) -> None:
        request.controller_epoch -= 1

    (found,) = obeyed_after(change)
    assert "although it has obeyed controller epoch 1" in found


def test_broker_that_obeys_a_request_for_its_earlier_life_is_found() -> None:
    def change(request: Message) -> None:
        request.broker_epoch -= 1

    (found,) = obeyed_after(change)
    assert "since its restart" in found


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
