"""A cluster on the test's own loop with one topic, and clients that send single requests."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.net.peers import PeerLink
from restow.model import TopicPartition
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.wire.messages import (
    CreateTopicsRequest,
    ListOffsetsRequest,
    Message,
    MetadataRequest,
    ProduceRequest,
)
from restow.wire.records import Record, build

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

WAIT_S = 120
TOPIC = "t"
PARTITION = TopicPartition(TOPIC, 0)
PRODUCE, LIST_OFFSETS, METADATA, CREATE_TOPICS = 0, 2, 3, 19
LATEST = -1


class Stage:
    """A running cluster of three brokers. Topic t has a replica on each, and broker 0 leads."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.faults = cluster.faults

    async def client(self, broker: int = 0, client_id: str = "tester") -> PeerLink:
        """Return a new connection to a broker."""
        link = PeerLink(SystemClock(), client_id)
        host, _, port = self.cluster.brokers[broker].address.rpartition(":")
        await SystemNetwork().connect(host, int(port), link, WAIT_S)
        return link

    def leader(self, seen_by: int = 1) -> int:
        known = self.cluster.brokers[seen_by].services.metadata.partition(PARTITION)
        return -1 if known is None else known.leader_id

    def in_sync(self, seen_by: int = 1) -> set[int]:
        known = self.cluster.brokers[seen_by].services.metadata.partition(PARTITION)
        return set() if known is None else set(known.isr)

    def log_dir(self, broker: int = 0) -> str:
        return self.cluster.brokers[broker].services.logs.directory_of(PARTITION).path

    def log_end(self, broker: int) -> int:
        """Return the end of a replica's log."""
        log = self.cluster.brokers[broker].services.logs.get(PARTITION)
        return -1 if log is None else log.end_offset

    async def end_offset(self, broker: int = 0) -> int:
        """Return how many records the leader has acknowledged."""
        link = await self.client(broker, "looker")
        kind = ListOffsetsRequest.ListOffsetsTopic
        part = kind.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=LATEST)
        body = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=[kind(name=TOPIC, partitions=[part])]
        )
        answer = await link.ask(LIST_OFFSETS, 5, body, WAIT_S)
        link.close()
        return int(answer.topics[0].partitions[0].offset)


@asynccontextmanager
async def staged(log_dirs: int = 1, **properties: str) -> AsyncIterator[Stage]:
    """Run a cluster with these broker configs, whose names have underscores for dots."""
    configs = {name.replace("_", "."): value for name, value in properties.items()}
    async with EmbeddedCluster(3, log_dirs=log_dirs, properties=configs, fsync=False) as cluster:
        stage = Stage(cluster)
        controller = cluster.brokers[0].services.metadata.controller_id
        link = await stage.client(controller)
        kind = CreateTopicsRequest.CreatableTopic
        by_hand = [kind.CreatableReplicaAssignment(partition_index=0, broker_ids=[0, 1, 2])]
        topic = kind(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=by_hand, configs=[])
        body = CreateTopicsRequest(topics=[topic], timeout_ms=WAIT_S * 1000, validate_only=False)
        assert (await link.ask(CREATE_TOPICS, 4, body, WAIT_S)).topics[0].error_code == 0
        link.close()
        await until(lambda: all(stage.leader(each) == 0 for each in cluster.brokers), "the topic is known")
        await until(lambda: all(PARTITION in logs_of(stage, each) for each in cluster.brokers), "its logs")
        yield stage


def logs_of(stage: Stage, broker: int) -> tuple[TopicPartition, ...]:
    return stage.cluster.brokers[broker].services.logs.partitions


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {WAIT_S} s: {what}") from None


def a_batch() -> Message:
    """Return a Produce request with one record for topic t."""
    kind = ProduceRequest.TopicProduceData
    part = kind.PartitionProduceData(index=0, records=build([Record(0, 1000, b"key", b"value")]))
    topics = [kind(name=TOPIC, partition_data=[part])]
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=WAIT_S * 1000, topic_data=topics)


async def produce(link: PeerLink) -> int:
    """Write one record and return the error code."""
    answer = await link.ask(PRODUCE, 7, a_batch(), WAIT_S)
    return int(answer.responses[0].partition_responses[0].error_code)


async def ask_metadata(link: PeerLink) -> Any:
    body = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    return await link.ask(METADATA, 5, body, WAIT_S)


def run(scenario: Any) -> None:
    """Run a scenario, so that a hang fails."""
    asyncio.run(asyncio.wait_for(scenario, 3 * WAIT_S))
