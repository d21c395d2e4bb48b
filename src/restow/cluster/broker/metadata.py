"""This broker's metadata cache, fed by the controller: brokers, topics, leaders.

It holds the encoded parts of Metadata responses, so that a response is quickly assembled.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from restow.model import Broker, TopicPartition
from restow.wire.between_brokers import EVERYTHING
from restow.wire.error_codes import ErrorCode
from restow.wire.metadata import PartitionMetadata, TopicMetadata
from restow.wire.primitives import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from restow.runtime.clock import Clock
    from restow.wire.messages import Message

NO_LEADER = -1
BEING_DELETED = -2
"""The leader that the controller names for a partition that is being deleted."""
GROUP_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC})


class MetadataCache:
    """Fed by UpdateMetadata; read by nearly every handler."""

    def __init__(self, cluster_id: str, clock: Clock) -> None:
        self.cluster_id = cluster_id
        self.controller_id = -1
        self.brokers: dict[int, Endpoint] = {}
        """The live brokers, each with the first of its listeners."""
        self.topics: dict[str, TopicMetadata] = {}
        self.version = 0
        """Grows whenever topics or partitions come or go."""
        self._clock = clock
        self._partitions: dict[str, dict[int, PartitionMetadata]] = {}
        """The controller's version; `topics` holds the version for clients."""
        self._names: dict[UUID, str] = {}
        self._at: dict[str, dict[int, Endpoint]] = {}
        """The live brokers by listener."""
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[bool]]] = []

    def apply(self, request: Message) -> tuple[TopicPartition, ...]:
        """Apply an UpdateMetadata request and return the removed partitions."""
        self.controller_id = request.controller_id
        if self._take_brokers(request.live_brokers):
            self._tell_clients_anew()
        gone = self._forget_all_but(request.topic_states) if request.request_type == EVERYTHING else []
        for state in request.topic_states:
            for partition in state.partition_states:
                if partition.leader == BEING_DELETED:
                    self._remove(state.topic_name, partition.partition_index)
                    gone.append(TopicPartition(state.topic_name, partition.partition_index))
                else:
                    self._put(state.topic_name, state.topic_id, _partition_metadata(partition))
        self._wake()
        return tuple(gone)

    def partition(self, partition: TopicPartition) -> PartitionMetadata | None:
        """Return the partition as the controller sent it."""
        return self._partitions.get(partition.topic, {}).get(partition.partition)

    def partitions(self, topic: str) -> tuple[PartitionMetadata, ...]:
        """Return a topic's partitions in order; empty for an unknown topic."""
        known = self._partitions.get(topic, {})
        return tuple(known[number] for number in sorted(known))

    def partition_count(self, topic: str) -> int:
        """Return a topic's partition count; 0 for an unknown topic."""
        return len(self._partitions.get(topic, ()))

    def names(self) -> tuple[str, ...]:
        """Return the names of all topics."""
        return tuple(self.topics)

    def id_of(self, topic: str) -> UUID | None:
        """Return the id of the topic with that name."""
        known = self.topics.get(topic)
        return None if known is None else known.topic_id

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with that id."""
        return self._names.get(topic_id)

    def at(self, listener: str) -> dict[int, Endpoint]:
        """Return the live brokers that have the listener, each with its address there."""
        return self._at.get(listener, {})

    def leader_endpoint(self, partition: TopicPartition, listener: str) -> Endpoint | None:
        """Return the address of a partition's live leader at a listener, if there is one."""
        known = self.partition(partition)
        return None if known is None else self.at(listener).get(known.leader_id)

    def placement_brokers(self) -> tuple[Broker, ...]:
        """Return the live brokers in order, for replica placement."""
        return tuple(Broker(each.node_id, each.rack) for _, each in sorted(self.brokers.items()))

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until metadata from the controller fulfils the condition. Return whether it does."""
        if condition():
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiter = (condition, future)
        self._waiters.append(waiter)
        timer = self._clock.call_later(timeout_s, partial(_give_up, future))
        try:
            return await future
        finally:
            timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _wake(self) -> None:
        still = []
        for condition, future in self._waiters:
            if future.done():
                continue
            if condition():
                future.set_result(True)
            else:
                still.append((condition, future))
        self._waiters = still

    def _take_brokers(self, live: Iterable[Message]) -> bool:
        """Update the live brokers. Return whether brokers came, left or changed their address."""
        brokers: dict[int, Endpoint] = {}
        at: dict[str, dict[int, Endpoint]] = {}
        for each in sorted(live, key=lambda broker: int(broker.id)):
            for it in each.endpoints:
                endpoint = Endpoint(each.id, it.host, it.port, each.rack)
                brokers.setdefault(each.id, endpoint)
                at.setdefault(it.listener, {})[each.id] = endpoint
        before, self.brokers, self._at = self.brokers, brokers, at
        return before.keys() != brokers.keys()

    def _put(self, topic: str, topic_id: UUID, it: PartitionMetadata) -> None:
        told = self.topics.get(topic)
        if told is None or told.topic_id != topic_id:
            if told is not None and told.topic_id is not None:
                self._names.pop(told.topic_id, None)
            told = self.topics[topic] = TopicMetadata(
                topic, topic_id=topic_id, is_internal=topic in INTERNAL_TOPICS
            )
            self._partitions[topic] = {}
            if topic_id is not None and topic_id.int:
                self._names[topic_id] = topic
        if it.partition not in self._partitions[topic]:
            self.version += 1
        self._partitions[topic][it.partition] = it
        told.put(self._as_clients_see(it))

    def _forget_all_but(self, topic_states: Iterable[Message]) -> list[TopicPartition]:
        """Remove the partitions that are not in these states, and return them."""
        told = {
            (topic.topic_name, each.partition_index)
            for topic in topic_states
            for each in topic.partition_states
        }
        gone = [
            TopicPartition(topic, number)
            for topic, partitions in self._partitions.items()
            for number in partitions
            if (topic, number) not in told
        ]
        for each in gone:
            self._remove(each.topic, each.partition)
        return gone

    def _remove(self, topic: str, partition: int) -> None:
        told = self.topics.get(topic)
        if told is None:
            return
        self.version += 1
        self._partitions[topic].pop(partition, None)
        told.remove(partition)
        if not self._partitions[topic]:
            del self._partitions[topic], self.topics[topic]
            if told.topic_id is not None:
                self._names.pop(told.topic_id, None)

    def _tell_clients_anew(self) -> None:
        """Rebuild all partitions after a broker change, which affects leaders and offline replicas."""
        for topic, partitions in self._partitions.items():
            told = self.topics[topic]
            for it in partitions.values():
                told.put(self._as_clients_see(it))

    def _as_clients_see(self, it: PartitionMetadata) -> PartitionMetadata:
        """Return the client's view: no dead leader, and replicas on dead brokers are offline."""
        alive = self.brokers
        offline = tuple(each for each in it.replicas if each not in alive or each in it.offline_replicas)
        if it.leader_id in alive:
            return it if offline == it.offline_replicas else it._replace(offline_replicas=offline)
        return it._replace(
            leader_id=NO_LEADER, offline_replicas=offline, error_code=ErrorCode.LEADER_NOT_AVAILABLE
        )


def _give_up(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)


def _partition_metadata(state: Message) -> PartitionMetadata:
    return PartitionMetadata(
        partition=state.partition_index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
        offline_replicas=tuple(state.offline_replicas),
    )
