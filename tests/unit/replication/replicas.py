"""Several brokers' replica managers in one process, without a network, on a manual clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

from restow.cluster.log import LogConfig, LogManager, MetaProperties
from restow.cluster.replication import (
    FetchAnswer,
    FetchPartition,
    FetchSpec,
    ReplicaManager,
    ReplicationConfig,
    Throttles,
)
from restow.cluster.replication.values import PartitionRefused
from restow.model import TopicPartition
from restow.runtime.disk import SystemDisk
from restow.wire.between_brokers import LeaderAndIsrRequest, StopReplicaRequest
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build
from tests.clock import HandClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from restow.cluster.replication import HostedPartition
    from restow.runtime.disk import Disk
    from restow.wire.fetch import Fetched
    from restow.wire.produce import Produced

T0 = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)
LAG_MAX_S = 10.0


class States:
    """The partitions' states as in a store: conditional on their version."""

    def __init__(self) -> None:
        self.isr: dict[TopicPartition, tuple[int, ...]] = {}
        self.leader: dict[TopicPartition, tuple[int, int]] = {}
        self.version: dict[TopicPartition, int] = {}
        self.writes: list[tuple[int, ...]] = []
        self.broken = False
        self.ineligible: set[int] = set()
        """Brokers that may be in no new ISR."""
        self.judge: Callable[[int, tuple[int, ...], tuple[int, ...]], None] = lambda *_: None
        """Called for every write: the leader, the ISR before and after."""
        self.held: asyncio.Event | None = None
        """If set, writes wait for it."""

    async def write(
        self,
        topic_partition: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        expected_znode_version: int,
    ) -> int | None:
        if self.held is not None:
            await self.held.wait()
        if self.broken:
            raise ConnectionError("the store is away")
        if self.version[topic_partition] != expected_znode_version:
            return None
        if self.ineligible.intersection(isr):
            raise PartitionRefused(ErrorCode.INELIGIBLE_REPLICA)
        assert self.leader[topic_partition] == (leader, leader_epoch)
        self.judge(leader, self.isr[topic_partition], isr)
        self.writes.append(isr)
        self.isr[topic_partition] = isr
        self.version[topic_partition] += 1
        return self.version[topic_partition]


class MemoryClient:
    """One broker's client for another's replica manager."""

    def __init__(self, cluster: Cluster, source: int, target: int) -> None:
        self._cluster = cluster
        self._link = (source, target)
        self.closed = False

    async def fetch(self, spec: FetchSpec) -> FetchAnswer:
        self._check()
        self._cluster.asked.append((self._link, spec))
        answer = await self._cluster.brokers[self._link[1]].fetch(spec)
        self._check()
        return answer

    def _check(self) -> None:
        if self.closed or self._link in self._cluster.cut or self._link[1] not in self._cluster.brokers:
            raise ConnectionError(f"no way from {self._link[0]} to {self._link[1]}")

    def close(self) -> None:
        self.closed = True


class Cluster:
    """Brokers 1 to n; the test plays the controller with `elect`."""

    def __init__(
        self,
        path: Path,
        brokers: int = 3,
        *,
        min_isr: int = 1,
        disk: Disk | None = None,
        log_dirs: int = 1,
    ) -> None:
        self.clock = HandClock()
        self.states = States()
        self.brokers: dict[int, ReplicaManager] = {}
        self.cut: set[tuple[int, int]] = set()
        self.asked: list[tuple[tuple[int, int], FetchSpec]] = []
        self.led: list[tuple[int, tuple[TopicPartition, ...], tuple[TopicPartition, ...]]] = []
        self.min_isr = min_isr
        self.log_config = LogConfig()
        self.controller_epoch = 1
        self.replicas: dict[TopicPartition, tuple[int, ...]] = {}
        self.throttles: dict[int, Throttles] = {}
        """Settings by broker, to be filled before it starts."""
        self._path = path
        self._log_dirs = log_dirs
        self._disk = disk or SystemDisk()
        for broker in range(1, brokers + 1):
            self.start(broker)

    def start(self, broker: int, **config: int) -> ReplicaManager:
        def failed(path: str, lost: tuple[TopicPartition, ...]) -> None:
            manager.directory_failed(path, lost)

        logs = LogManager(
            self._disk,
            self.paths(broker),
            MetaProperties("c", broker),
            config_of=lambda _: self.log_config,
            now_ms=self.clock.now_ms,
            on_directory_failure=failed,
        )
        manager = ReplicaManager(
            broker,
            logs,
            self.clock,
            self.states,
            lambda leader: MemoryClient(self, broker, leader),
            min_insync_replicas=lambda _: self.min_isr,
            config=ReplicationConfig(lag_time_max_ms=int(LAG_MAX_S * 1000), **config),
            on_leadership=lambda led, resigned: self.led.append((broker, led, resigned)),
            throttles=self.throttles.get(broker),
        )
        logs.start()
        self.brokers[broker] = manager
        return manager

    def paths(self, broker: int) -> list[str]:
        """Return the broker's log dirs."""
        if self._log_dirs == 1:
            return [str(self._path / str(broker))]
        return [str(self._path / f"{broker}-{number}") for number in range(self._log_dirs)]

    async def stop(self, broker: int, *, cleanly: bool = True) -> None:
        manager = self.brokers.pop(broker)
        await manager.stop()
        if cleanly:
            manager.logs.close()
        else:
            manager.logs.release()

    async def close(self) -> None:
        for broker in tuple(self.brokers):
            await self.stop(broker)
        assert self.clock.waiting == 0

    def elect(
        self,
        leader: int,
        *,
        isr: Sequence[int] | None = None,
        replicas: Sequence[int] | None = None,
        to: Sequence[int] | None = None,
        topic_partition: TopicPartition = T0,
        is_new: bool = False,
    ) -> dict[int, int]:
        """Write a new state and send it to the brokers. Return each broker's error code."""
        states = self.states
        chosen = tuple(replicas or self.replicas.get(topic_partition) or sorted(self.brokers))
        self.replicas[topic_partition] = chosen
        states.isr[topic_partition] = tuple(isr or states.isr.get(topic_partition) or chosen)
        states.version[topic_partition] = states.version.get(topic_partition, -1) + 1
        epoch = states.leader.get(topic_partition, (0, -1))[1] + 1
        states.leader[topic_partition] = (leader, epoch)
        return {
            broker: self.tell(broker, topic_partition, is_new=is_new)
            for broker in (chosen if to is None else to)
            if broker in self.brokers
        }

    def tell(self, broker: int, topic_partition: TopicPartition = T0, *, is_new: bool = False) -> int:
        """Send the written state to one broker."""
        answer = self.brokers[broker].apply_leader_and_isr(self.order(topic_partition, is_new=is_new))
        if answer.error_code:
            return int(answer.error_code)
        return int(answer.topics[0].partition_errors[0].error_code)

    def order(self, topic_partition: TopicPartition = T0, *, is_new: bool = False) -> Any:
        leader, epoch = self.states.leader[topic_partition]
        state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
            partition_index=topic_partition.partition,
            controller_epoch=self.controller_epoch,
            leader=leader,
            leader_epoch=epoch,
            isr=list(self.states.isr[topic_partition]),
            partition_epoch=self.states.version[topic_partition],
            replicas=list(self.replicas[topic_partition]),
            is_new=is_new,
        )
        topic = LeaderAndIsrRequest.LeaderAndIsrTopicState(
            topic_name=topic_partition.topic, topic_id=TOPIC_ID, partition_states=[state]
        )
        return LeaderAndIsrRequest(
            controller_id=0, controller_epoch=self.controller_epoch, topic_states=[topic], live_leaders=[]
        )

    def stop_replica(self, broker: int, *, delete: bool, leader_epoch: int = -1) -> int:
        state = StopReplicaRequest.StopReplicaTopicState.StopReplicaPartitionState(
            partition_index=T0.partition, leader_epoch=leader_epoch, delete_partition=delete
        )
        topic = StopReplicaRequest.StopReplicaTopicState(topic_name=T0.topic, partition_states=[state])
        request = StopReplicaRequest(
            controller_id=0, controller_epoch=self.controller_epoch, topic_states=[topic]
        )
        return int(self.brokers[broker].stop_replicas(request).partition_errors[0].error_code)

    def at(self, broker: int, topic_partition: TopicPartition = T0) -> HostedPartition:
        partition = self.brokers[broker].partition(topic_partition)
        assert partition is not None
        return partition

    def bytes_at(self, broker: int) -> bytes:
        """Return all bytes of the broker's log."""
        log = self.at(broker).log
        found = b""
        offset = log.start_offset
        while offset < log.end_offset:
            part = log.read(offset, 1 << 20)
            found += part
            offset = _end_of(part)
        return found

    def produce(
        self,
        broker: int,
        *values: str,
        acks: int = -1,
        timeout_ms: int = 5000,
        topic_partition: TopicPartition = T0,
    ) -> asyncio.Task[Produced]:
        return asyncio.get_running_loop().create_task(
            self._produce(broker, values, acks, timeout_ms, topic_partition)
        )

    async def _produce(
        self, broker: int, values: Sequence[str], acks: int, timeout_ms: int, topic_partition: TopicPartition
    ) -> Produced:
        results = await self.brokers[broker].append(
            {topic_partition: batch(*values)}, acks=acks, timeout_ms=timeout_ms
        )
        return results[topic_partition]

    async def consume(self, broker: int, offset: int, **options: Any) -> Fetched:
        wanted = FetchPartition(offset, 1 << 20, options.pop("leader_epoch", -1))
        answer = await self.brokers[broker].fetch(FetchSpec(partitions={T0: wanted}, **options))
        return answer.partitions[T0]


def batch(*values: str) -> bytes:
    """Return a producer's batch of these values."""
    return build([Record(number, 1, None, value.encode()) for number, value in enumerate(values)])


def _end_of(data: bytes) -> int:
    from restow.wire.batches import check

    return check(data)[-1][1].next_offset


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)
