"""In virtual time nothing is late by chance, so what real time must forgive is asserted to the moment."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from restow.client import ConfigResource, NewTopic
from restow.execute.throttle.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from restow.model import TopicPartition
from restow.runtime.chance import SeededChance
from restow.sim.admin import connected_admin
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.cluster import SimCluster
from restow.sim.disk import SimDisk
from restow.sim.loop import run
from restow.sim.process import SimProcess
from restow.sim.producer import SimProducer
from restow.sim.states import NOBODY, controller_of, state_of
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from restow.client import KafkaAdmin
    from restow.sim.cluster import SimNode

TOPIC, PARTITIONS = "orders", 6
LARGEST_FETCH = 1_048_576
"""Kafka asks its quota before a fetch, so that one fetch may be too much."""
NOT_NOW = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


@asynccontextmanager
async def admin_of(cluster: SimCluster) -> AsyncIterator[KafkaAdmin]:
    process = SimProcess("tool", cluster.network, SimDisk(SeededChance("tool")))
    async with connected_admin(process, cluster.network, NodeClock(), cluster.nodes) as admin:
        yield admin


async def create(cluster: SimCluster, partitions: int = PARTITIONS) -> None:
    async with admin_of(cluster) as admin:
        await admin.create_topics([NewTopic(name=TOPIC, partitions=partitions, replication_factor=3)])


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def produce(
    cluster: SimCluster, records: int, size: int = 100, *, topic: str = TOPIC, partitions: int = PARTITIONS
) -> None:
    client = SimClient("producer", cluster.network, NodeClock())
    producer = SimProducer(client, cluster.nodes, topic)
    for number in range(records):
        producer.put(number % partitions, b"x" * size)
    while not producer.is_idle:
        await producer.round()
        await asyncio.sleep(0.05)
    client.close()


def isr_of(cluster: SimCluster, number: int, topic: str = TOPIC) -> set[int]:
    state = state_of(cluster.store.tree, TopicPartition(topic, number))
    return set() if state is None else set(state.isr)


def test_broker_starts_at_the_first_attempt_though_the_store_is_slow() -> None:
    """With real processes, a broker that lost touch with ZooKeeper as it started is started again."""

    async def main() -> None:
        async with SimCluster(3) as cluster:
            await create(cluster)
            for node in cluster.nodes.values():
                await node.kill()
                node.store.latency_s = 2.0
                await node.start()
                assert node.broker.is_running
                node.store.latency_s = 0.001
                await until(lambda: all(len(isr_of(cluster, each)) == 3 for each in range(PARTITIONS)))

    run(main())


def files(node: SimNode) -> dict[str, bytes]:
    (folder,) = node.log_dirs
    return {
        f"{log}/{name}": node.disk.read_bytes(f"{folder}/{log}/{name}")
        for log in node.disk.list(folder)
        if log.startswith(f"{TOPIC}-")
        for name in node.disk.list(f"{folder}/{log}")
        if name.endswith(".log")
    }


def test_replicas_have_equal_bytes_as_soon_as_they_are_in_sync() -> None:
    """With real processes, they have minutes for it."""

    async def main() -> None:
        async with SimCluster(3) as cluster:
            await create(cluster)
            for node in cluster.nodes.values():
                await node.kill()
                await until(
                    lambda down=node.id: all(down not in isr_of(cluster, p) for p in range(PARTITIONS))
                )
                await produce(cluster, 120)
                await node.start()
                await until(lambda: all(len(isr_of(cluster, each)) == 3 for each in range(PARTITIONS)))
                first, second, third = (files(each) for each in cluster.nodes.values())
                assert len(first) == PARTITIONS
                assert first == second == third
            assert sum(map(len, first.values())) > 3 * 120 * 100

    run(main())


class Committer:
    """Commits and looks up positions of a group without members."""

    def __init__(self, cluster: SimCluster, name: str) -> None:
        self._cluster = cluster
        self._client = SimClient(name, cluster.network, NodeClock())

    async def coordinator(self) -> int:
        while True:
            for broker in self._cluster.nodes:
                try:
                    found = await self._client.ask(
                        FindCoordinatorRequest(key="readers", key_type=0), broker, version=3, timeout_s=2
                    )
                except (ConnectionError, TimeoutError):
                    continue
                if not found.error_code:
                    return int(found.node_id)
            await asyncio.sleep(0.1)

    async def commit(self, offset: int) -> bool:
        """Return whether the commit was acknowledged; otherwise it may or may not be carried out."""
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id="readers",
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=[topic(name=TOPIC, partitions=[partition])],
        )
        try:
            answer = await self._client.ask(request, await self.coordinator(), version=8, timeout_s=2)
        except (ConnectionError, TimeoutError):
            return False
        return not answer.topics[0].partitions[0].error_code

    async def find(self) -> int:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        while True:
            try:
                answer = await self._client.ask(
                    OffsetFetchRequest(group_id="readers", topics=[topic]),
                    await self.coordinator(),
                    version=7,
                    timeout_s=2,
                )
            except (ConnectionError, TimeoutError):
                continue
            if answer.error_code:
                assert answer.error_code in NOT_NOW
                await asyncio.sleep(0.1)
                continue
            return int(answer.topics[0].partitions[0].committed_offset)


def test_next_look_finds_exactly_the_acknowledged_commit_through_coordinator_failures() -> None:
    """With real clients, a repeated request may be carried out late, so a later look counts as well."""

    async def main() -> None:
        async with SimCluster(4) as cluster:
            await create(cluster)
            commits, looks = Committer(cluster, "commits"), Committer(cluster, "looks")
            acknowledged = 0
            for offset in range(1, 121):
                if offset % 40 == 20:
                    node = cluster.nodes[await commits.coordinator()]
                    await node.kill()
                if offset % 40 == 0:
                    await node.start()
                if await commits.commit(offset):
                    acknowledged += 1
                    assert await looks.find() == offset
                else:
                    await asyncio.sleep(1)
            assert acknowledged > 60

    run(main())


def test_starting_broker_knows_all_of_a_topic_or_says_that_it_does_not() -> None:
    """A real producer that believes a half-told topic refuses its partitions with a ValueError."""

    async def main() -> None:
        async with SimCluster(3) as cluster:
            await create(cluster)
            client = SimClient("asks", cluster.network, NodeClock())
            for node in cluster.nodes.values():
                await node.kill()
                await until(lambda: controller_of(cluster.store.tree) != NOBODY)
                starting = asyncio.create_task(node.start())
                while True:
                    try:
                        wanted = [MetadataRequest.MetadataRequestTopic(name=TOPIC)]
                        answer = await client.ask(MetadataRequest(topics=wanted), node.id, version=9)
                    except (ConnectionError, TimeoutError):
                        await asyncio.sleep(0.001)
                        continue
                    (topic,) = answer.topics
                    if not topic.error_code:
                        break
                    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                assert len(topic.partitions) == PARTITIONS
                await starting
                await until(lambda: all(len(isr_of(cluster, each)) == 3 for each in range(PARTITIONS)))
            client.close()

    run(main())


def test_throttle_holds_at_every_moment_and_slows_nobody_else() -> None:
    """In real time, the rate is compared with a clock that goes on while the machine stands still."""
    rate, size, records = 50_000, 1_000, 10_000

    async def main() -> None:
        async with SimCluster(3) as cluster, admin_of(cluster) as admin:
            await admin.create_topics(
                [
                    NewTopic(name="moved", by_hand={0: (0,)}),
                    NewTopic(name=TOPIC, by_hand={0: (0, 1, 2)}),
                ]
            )
            await produce(cluster, records, size, topic="moved", partitions=1)
            throttle = {
                ConfigResource("topic", "moved"): {LEADER_REPLICAS: "0:0", FOLLOWER_REPLICAS: "0:2"},
                ConfigResource("broker", "0"): {LEADER_RATE: str(rate)},
                ConfigResource("broker", "2"): {FOLLOWER_RATE: str(rate)},
            }
            assert set((await admin.incremental_alter_configs(throttle)).values()) == {None}
            loop = asyncio.get_running_loop()
            moved = TopicPartition("moved", 0)
            began_s = loop.time()
            await admin.alter_partition_reassignments({moved: (2,)})
            work = asyncio.create_task(produce(cluster, 500, topic=TOPIC, partitions=1))
            replicas = cluster.nodes[2].broker.services.replicas
            while isr_of(cluster, 0, "moved") != {2}:
                replica = replicas.partition(moved)
                copied = 0 if replica is None else replica.log.size_bytes
                assert copied <= rate * (loop.time() - began_s) + LARGEST_FETCH
                assert isr_of(cluster, 0) == {0, 1, 2}, "a replica that does not move is not slowed down"
                await asyncio.sleep(0.05)
            took_s = loop.time() - began_s
            await work
            assert 0.8 * records * size / rate < took_s < 1.2 * records * size / rate

    run(main())
