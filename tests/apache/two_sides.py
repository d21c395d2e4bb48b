"""Our cluster and Apache's behind one interface: the same requests to both, and the same view of their trees.

Brokers are 0, 1 and 2 on both sides; Apache's own ids are one higher, which only this file knows.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from restow.cluster.store import NoNode
from restow.cluster.store.znodes import (
    BrokerRegistration,
    ControllerZNode,
    DeleteTopic,
    EntityConfig,
    PartitionStateZNode,
    TopicZNode,
)
from restow.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
)
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from harness.apache import Cluster
    from restow.cluster.embedded import EmbeddedCluster
    from restow.cluster.store import Store

BROKERS = 3
PATIENCE_S = 120.0
NOT_CONTROLLER = 41
CREATE, DELETE, GROW, ELECT = 19, 20, 37, 43


class Side(Protocol):
    """One of the two clusters."""

    name: str
    shift: int
    """The difference of this side's broker ids."""

    @property
    def store(self) -> Store:
        """The store with its tree."""

    def port(self, broker: int) -> int:
        """The port of a broker, by its id on this side."""

    async def stop(self, broker: int) -> None:
        """Stop a broker in order."""

    async def kill(self, broker: int) -> None:
        """Kill a broker."""

    async def start(self, broker: int) -> None:
        """Start a broker again, and wait until it knows the others."""


class Ours:
    """The embedded cluster."""

    name = "ours"
    shift = 0

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        assert cluster._store is not None
        self.store: Store = cluster._store.session()

    def port(self, broker: int) -> int:
        return int(self._cluster.brokers[broker].address.rpartition(":")[2])

    async def stop(self, broker: int) -> None:
        await self._cluster.stop_broker(broker)

    async def kill(self, broker: int) -> None:
        await self._cluster.kill_broker(broker)

    async def start(self, broker: int) -> None:
        await self._cluster.start_broker(broker)
        await self._cluster.settled()


class Theirs:
    """Apache's cluster, on a ZooKeeper."""

    name = "Apache's"
    shift = 1

    def __init__(self, cluster: Cluster, store: Store) -> None:
        self._cluster = cluster
        self.store = store

    def port(self, broker: int) -> int:
        return self._cluster.brokers[broker].port

    async def stop(self, broker: int) -> None:
        await asyncio.to_thread(self._cluster.brokers[broker + 1].stop)

    async def kill(self, broker: int) -> None:
        await asyncio.to_thread(self._cluster.brokers[broker + 1].kill)

    async def start(self, broker: int) -> None:
        self._cluster.brokers[broker + 1].launch()
        for each in self._cluster.brokers.values():
            await asyncio.to_thread(each.until_ready, BROKERS)


class Conversation:
    """Requests to a side's controller, and the tree afterwards."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._number = 0

    async def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        by_hand: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
        only_check: bool = False,
        timeout_ms: int = 30_000,
        times: int = 1,
    ) -> Any:
        """Return its code, the partitions and replicas in the answer, and how often it is answered."""
        make = CreateTopicsRequest.CreatableTopic
        topic = make(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=[
                make.CreatableReplicaAssignment(partition_index=number, broker_ids=self._outward(replicas))
                for number, replicas in (by_hand or {}).items()
            ],
            configs=[
                make.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
            ],
        )
        body = CreateTopicsRequest(topics=[topic] * times, timeout_ms=timeout_ms, validate_only=only_check)
        results = (await self._ask(CREATE, 7, body)).topics
        told = {(each.error_code, each.num_partitions, each.replication_factor) for each in results}
        assert len(told) == 1, told
        return (*told.pop(), len(results))

    async def grow(
        self,
        name: str,
        count: int,
        *,
        by_hand: Sequence[Sequence[int]] | None = None,
        only_check: bool = False,
        timeout_ms: int = 30_000,
        times: int = 1,
    ) -> Any:
        """Return its code, as often as it is answered."""
        make = CreatePartitionsRequest.CreatePartitionsTopic
        given = None
        if by_hand is not None:
            given = [make.CreatePartitionsAssignment(broker_ids=self._outward(each)) for each in by_hand]
        topic = make(name=name, count=count, assignments=given)
        body = CreatePartitionsRequest(
            topics=[topic] * times, timeout_ms=timeout_ms, validate_only=only_check
        )
        return [each.error_code for each in (await self._ask(GROW, 3, body)).results]

    async def delete(self, *names: str, timeout_ms: int = 30_000) -> Any:
        """Return the codes by name."""
        body = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
        results = (await self._ask(DELETE, 5, body)).responses
        return sorted((each.name, each.error_code) for each in results)

    async def elect(self, kind: int, partitions: Mapping[str, Sequence[int]] | None) -> Any:
        """Return the codes by topic and partition, of a PREFERRED (0) or UNCLEAN (1) election."""
        make = ElectLeadersRequest.TopicPartitions
        wanted = None
        if partitions is not None:
            wanted = [make(topic=name, partitions=list(numbers)) for name, numbers in partitions.items()]
        body = ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=30_000)
        answer = await self._ask(ELECT, 2, body)
        results = answer.replica_election_results
        return answer.error_code, sorted(
            (topic.topic, each.partition_id, each.error_code)
            for topic in results
            for each in topic.partition_result
        )

    # The tree

    async def topic(self, name: str) -> Any:
        """Return the replicas of each partition; None if there is no such topic."""
        try:
            node = await self.side.store.get(TopicZNode.path(name))
        except NoNode:
            return None
        partitions = TopicZNode.decode(node.data, name).partitions
        return {number: self._inward(each.replicas) for number, each in sorted(partitions.items())}

    async def topics(self) -> Any:
        return await self.side.store.children(TopicZNode.PARENT)

    async def config(self, name: str) -> Any:
        path = EntityConfig.topic_path(name)
        return dict(EntityConfig.decode((await self.side.store.get(path)).data, path).values)

    async def is_deleted(self, name: str) -> bool:
        paths = (TopicZNode.path(name), DeleteTopic.path(name), EntityConfig.topic_path(name))
        return all(node is None for node in await self.side.store.get_each(paths))

    async def state(self, name: str, number: int) -> Any:
        """Return leader, ISR as a set, leader epoch, node version, and controller epochs since the first."""
        path = PartitionStateZNode.path(name, number)
        node = await self.side.store.get(path)
        state = PartitionStateZNode.decode(node.data, path)
        leader = state.leader if state.leader < 0 else state.leader - self.side.shift
        return leader, frozenset(self._inward(state.isr)), state.leader_epoch, node.stat.version

    async def until(self, wanted: Any, name: str, number: int = 0) -> Any:
        """Wait for that leader and ISR; return the leader epoch and the node version."""
        found: Any = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    with suppress(NoNode):
                        found = await self.state(name, number)
                    if found and found[:2] == (wanted[0], frozenset(wanted[1])):
                        return found[2:]
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{self.side.name}: {name}-{number} is {found}, not {wanted}") from None

    async def until_isr(self, wanted: Set[int], name: str, number: int = 0) -> None:
        """Wait for that ISR, whoever of it leads."""
        found: Any = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while found is None or found[1] != wanted or found[0] not in wanted:
                    await asyncio.sleep(0.05)
                    found = await self.state(name, number)
        except TimeoutError:
            raise AssertionError(f"{self.side.name}: {name}-{number} is {found}, not {wanted}") from None

    async def registered(self) -> set[int]:
        """Return the ids of the live brokers, as the tree has them."""
        return {int(each) for each in await self.side.store.children(BrokerRegistration.PARENT)}

    async def until_deleted(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await self.is_deleted(name):
                await asyncio.sleep(0.05)

    # Requests

    async def _ask(self, api_key: int, version: int, body: Any) -> Any:
        """Ask the controller, and retry when it has just changed, as clients do."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    return await self._once(api_key, version, body)
                except (OSError, NoNode):
                    await asyncio.sleep(0.1)

    async def _once(self, api_key: int, version: int, body: Any) -> Any:
        answer = await self.exchange(api_key, version, body)
        if NOT_CONTROLLER in _codes(answer):
            raise ConnectionError("the controller has changed")
        return answer

    async def exchange(self, api_key: int, version: int, body: Any) -> Any:
        """Send one request to the controller and return its answer, whatever that is."""
        node = await self.side.store.get(ControllerZNode.PATH)
        client = await Client.connect(self.side.port(ControllerZNode.decode(node.data).broker_id))
        self._number += 1
        client.ask(api_key, version, self._number, body)
        try:
            return await client.answer(api_key, version)
        finally:
            client.connection.close()

    def _outward(self, brokers: Sequence[int]) -> list[int]:
        return [each + self.side.shift if each >= 0 else each for each in brokers]

    def _inward(self, brokers: Sequence[int]) -> tuple[int, ...]:
        return tuple(each - self.side.shift for each in brokers)


def _codes(answer: Any) -> set[int]:
    for field in ("topics", "results", "responses"):
        if hasattr(answer, field):
            return {each.error_code for each in getattr(answer, field)}
    return {answer.error_code}
