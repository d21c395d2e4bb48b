"""Fake brokers that obey a real controller, on a real store."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from restow.cluster.broker.registration import register
from restow.cluster.controller import Controller, ControllerConfig, random_topic_id
from restow.cluster.controller.steps import go_on
from restow.cluster.store import Create, ensure_paths
from restow.cluster.store.znodes import (
    PERSISTENT_PATHS,
    AdvertisedEndpoint,
    BrokerRegistration,
    EntityConfig,
    IsrChangeNotification,
    LogDirEvent,
    PartitionStateZNode,
    TopicZNode,
)
from restow.model import ReplicaAssignment, TopicPartition
from restow.runtime.chance import SeededChance
from restow.runtime.clock import SystemClock
from restow.wire.between_brokers import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from restow.wire.error_codes import ErrorCode
from tests.conformance.stores import Embedded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from restow.cluster.controller import BrokerChannel
    from restow.cluster.controller.steps import Hook
    from restow.cluster.store import Store
    from tests.conformance.stores import Server

PATIENCE_S = 120.0

make_server: Callable[[], Server] = partial(Embedded, None)
"""The store for new clusters; other tests replace it to run the same tests on another store."""


@dataclass
class FakeBroker:
    """A fake broker's received requests, and its responses."""

    id: int
    session: Store
    epoch: int = 0
    controller_epoch: int = 0
    hosted: dict[TopicPartition, Any] = field(default_factory=dict)
    """The partition states from LeaderAndIsr."""
    on_disk: set[TopicPartition] = field(default_factory=set)
    metadata: dict[TopicPartition, Any] = field(default_factory=dict)
    live_brokers: set[int] = field(default_factory=set)
    failed: set[TopicPartition] = field(default_factory=set)
    """Replicas in a failed log dir."""
    heard: list[Any] = field(default_factory=list)
    refused: int = 0

    def answer(self, request: Any) -> Any:
        """Answer like a broker: refuse an older controller epoch."""
        kinds: dict[type, tuple[Callable[[Any], Any], Any]] = {
            LeaderAndIsrRequest: (self._serve, LeaderAndIsrResponse),
            StopReplicaRequest: (self._stop, StopReplicaResponse),
            UpdateMetadataRequest: (self._learn, UpdateMetadataResponse),
        }
        handle, response = kinds[type(request)]
        if request.controller_epoch < self.controller_epoch:
            self.refused += 1
            return response(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        if request.broker_epoch < self.epoch:
            return response(error_code=ErrorCode.STALE_BROKER_EPOCH)
        self.controller_epoch = request.controller_epoch
        self.heard.append(request)
        return handle(request)

    def _serve(self, request: Any) -> Any:
        topics = []
        for topic in request.topic_states:
            errors = []
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                error = ErrorCode.NONE
                if partition in self.failed:
                    error = ErrorCode.KAFKA_STORAGE_ERROR
                elif partition in self.hosted and state.leader_epoch < self.hosted[partition].leader_epoch:
                    error = ErrorCode.STALE_CONTROLLER_EPOCH
                else:
                    self.hosted[partition] = state
                    self.on_disk.add(partition)
                make = LeaderAndIsrResponse.LeaderAndIsrPartitionError
                errors.append(make(partition_index=partition.partition, error_code=error))
            topic_error = LeaderAndIsrResponse.LeaderAndIsrTopicError
            topics.append(topic_error(topic_id=topic.topic_id, partition_errors=errors))
        return LeaderAndIsrResponse(error_code=0, topics=topics, partition_errors=[])

    def _stop(self, request: Any) -> Any:
        errors = []
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                error = ErrorCode.KAFKA_STORAGE_ERROR if partition in self.failed else ErrorCode.NONE
                if error is ErrorCode.NONE:
                    self.hosted.pop(partition, None)
                    if state.delete_partition:
                        self.on_disk.discard(partition)
                make = StopReplicaResponse.StopReplicaPartitionError
                errors.append(
                    make(topic_name=topic.topic_name, partition_index=partition.partition, error_code=error)
                )
        return StopReplicaResponse(error_code=0, partition_errors=errors)

    def _learn(self, request: Any) -> Any:
        self.live_brokers = {each.id for each in request.live_brokers}
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                if state.leader == -2:
                    self.metadata.pop(partition, None)
                else:
                    self.metadata[partition] = state
        return UpdateMetadataResponse(error_code=0)


class FakeCluster:
    """Brokers, their sessions and their controllers."""

    def __init__(self, server: Server, store: Store) -> None:
        self.server = server
        self.store = store
        self.brokers: dict[int, FakeBroker] = {}
        self.controllers: list[Controller] = []
        self.unreachable: set[int] = set()
        self.new_topic_id = partial(random_topic_id, SeededChance(0))

    async def call(self, broker_id: int, request: Any) -> Any:
        """Deliver a request through its encoded bytes, as over the wire."""
        await asyncio.sleep(0)
        if broker_id in self.unreachable:
            raise ConnectionRefusedError(f"broker {broker_id} is not there")
        version = _VERSIONS[type(request)]
        asked = type(request).decode(request.encode(version=version), version)
        answer = self.brokers[broker_id].answer(asked)
        return type(answer).decode(answer.encode(version=version), version)

    async def start_broker(self, broker_id: int, *, keep: bool = True) -> FakeBroker:
        """Start a broker, with its earlier replicas if it ran before."""
        before = self.brokers.get(broker_id)
        broker = FakeBroker(broker_id, await self.server.session())
        if before is not None and keep:
            broker.on_disk = before.on_disk
        registration = BrokerRegistration(
            endpoints=(AdvertisedEndpoint("PLAINTEXT", "localhost", 9092 + broker_id),), timestamp_ms=0
        )
        broker.epoch = await register(
            broker.session, broker_id, registration, SystemClock(), patience_s=PATIENCE_S
        )
        self.brokers[broker_id] = broker
        self.unreachable.discard(broker_id)
        return broker

    async def stop_broker(self, broker_id: int) -> None:
        """Kill a broker."""
        self.unreachable.add(broker_id)
        await self.server.expire(self.brokers[broker_id].session)

    async def start_controller(
        self,
        broker_id: int,
        config: ControllerConfig | None = None,
        at: Hook = go_on,
        *,
        store: Store | None = None,
        channel: BrokerChannel | None = None,
    ) -> Controller:
        """Start a controller on that broker, on the broker's own session unless another is given."""
        controller = Controller(
            broker_id,
            store or self.brokers[broker_id].session,
            SystemClock(),
            channel or self,
            config or ControllerConfig(retry_backoff_s=0.001),
            new_topic_id=self.new_topic_id,
            at=at,
        )
        self.controllers.append(controller)
        await controller.start()
        return controller

    async def create(self, name: str, assignment: Mapping[int, tuple[int, ...]], **configs: str) -> None:
        """Create a topic by its znodes; replication factors may differ, as after a reassignment."""
        topic_configs = {key.replace("_", "."): value for key, value in configs.items()}
        partitions = {number: ReplicaAssignment(replicas) for number, replicas in assignment.items()}
        topic = TopicZNode(topic_id=self.new_topic_id(), partitions=partitions)
        await self.store.multi(
            [
                Create(EntityConfig.topic_path(name), EntityConfig(topic_configs).encode()),
                Create(TopicZNode.path(name), topic.encode()),
            ]
        )

    async def state(self, topic: str, partition: int) -> PartitionStateZNode:
        """Return the partition's state znode."""
        path = PartitionStateZNode.path(topic, partition)
        return PartitionStateZNode.decode((await self.store.get(path)).data, path)

    async def topics(self) -> tuple[str, ...]:
        return await self.store.children(TopicZNode.PARENT)

    async def has_nothing_under(self, path: str) -> bool:
        return await self.store.children(path) == ()

    async def settled(self) -> None:
        """Wait until every live broker has the store's metadata and the assigned replicas."""
        await self.until(self._is_settled)

    async def _is_settled(self) -> bool:
        live = self.brokers.keys() - self.unreachable
        states = {}
        leaving = await self.store.children("/admin/delete_topics")
        for name in await self.topics():
            topic = TopicZNode.decode(
                (await self.store.get(TopicZNode.path(name))).data, TopicZNode.path(name)
            )
            if name in leaving:
                replicas = [
                    (TopicPartition(name, number), broker_id)
                    for number, assignment in topic.partitions.items()
                    for broker_id in assignment.replicas
                ]
                if all(b in live and p not in self.brokers[b].failed for p, b in replicas):
                    return False
                continue
            for number, (replicas, _, _) in topic.partitions.items():
                if not await self.store.exists(PartitionStateZNode.path(name, number)):
                    if live.intersection(replicas):
                        return False
                    continue
                state = await self.state(name, number)
                partition = TopicPartition(name, number)
                states[partition] = state
                assert state.isr
                assert set(state.isr) <= set(replicas)
                assert state.leader in (-1, *state.isr)
                able = {each for each in live & set(state.isr) if partition not in self.brokers[each].failed}
                if (state.leader not in able) if able else (state.leader != -1):
                    return False
                if able and able != set(state.isr):
                    return False
        return all(self._agrees(self.brokers[each], live, states, leaving) for each in live)

    @staticmethod
    def _agrees(
        broker: FakeBroker,
        live: set[int],
        states: Mapping[TopicPartition, PartitionStateZNode],
        leaving: tuple[str, ...],
    ) -> bool:
        known = {
            p: (s.leader, s.leader_epoch, tuple(s.isr))
            for p, s in broker.metadata.items()
            if p.topic not in leaving
        }
        wanted = {p: (s.leader, s.leader_epoch, s.isr) for p, s in states.items()}
        served = all(
            broker.hosted[p].leader_epoch == s.leader_epoch
            for p, s in states.items()
            if broker.id in s.isr and p not in broker.failed
        )
        return broker.live_brokers == live and known == wanted and served

    async def until(self, condition: Callable[[], bool | Any]) -> None:
        """Wait for a condition that must come true."""
        why: Exception | None = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    try:
                        found = condition()
                        if asyncio.iscoroutine(found):
                            found = await found
                        if found:
                            return
                    except Exception as error:  # noqa: BLE001  not there yet
                        why = error
                    await asyncio.sleep(0.001)
        except TimeoutError:
            raise TimeoutError(f"it has not come about within {PATIENCE_S} s") from why


async def write_isr(cluster: FakeCluster, partition: TopicPartition, isr: tuple[int, ...]) -> None:
    """Change the ISR like a leader: keep the epoch, raise the znode's version, leave a notification."""
    path = PartitionStateZNode.path(*partition)
    node = await cluster.store.get(path)
    before = PartitionStateZNode.decode(node.data, path)
    after = PartitionStateZNode(
        leader=before.leader,
        leader_epoch=before.leader_epoch,
        isr=isr,
        controller_epoch=before.controller_epoch,
    )
    await cluster.store.set(path, after.encode(), node.stat.version)
    note = IsrChangeNotification((partition,)).encode()
    await cluster.store.create(IsrChangeNotification.PREFIX, note, sequential=True)


async def lose_directory(cluster: FakeCluster, broker_id: int, *lost: TopicPartition) -> None:
    """Fail these replicas' log dir on a broker, and notify the controller."""
    cluster.brokers[broker_id].failed.update(lost)
    note = LogDirEvent(broker_id).encode()
    await cluster.store.create(LogDirEvent.PREFIX, note, sequential=True)


_VERSIONS: dict[Any, int] = {LeaderAndIsrRequest: 7, StopReplicaRequest: 4, UpdateMetadataRequest: 8}


@asynccontextmanager
async def fake_cluster(brokers: int = 3) -> AsyncIterator[FakeCluster]:
    """Brokers 0 to n − 1 without a controller; all stop at the end."""
    server = make_server()
    cluster = FakeCluster(server, await server.session())
    await ensure_paths(cluster.store, PERSISTENT_PATHS)
    for broker_id in range(brokers):
        await cluster.start_broker(broker_id)
    try:
        yield cluster
    finally:
        for controller in cluster.controllers:
            await controller.stop()
        await server.stop()
