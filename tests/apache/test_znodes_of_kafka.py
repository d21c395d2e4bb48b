"""A real Kafka 3.9 in ZooKeeper mode: we read its tree, and it reads ours."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.zookeeper import zookeeper
from restow.cluster.store import ensure_paths, znodes
from restow.cluster.store.zookeeper import ZooKeeperStore
from restow.model import ReplicaAssignment, TopicPartition
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from restow.cluster.store import Store

pytestmark = pytest.mark.apache

KINDS: dict[str, Any] = {
    r"/controller": znodes.ControllerZNode,
    r"/controller_epoch": znodes.ControllerEpoch,
    r"/brokers/ids/\d+": znodes.BrokerRegistration,
    r"/brokers/topics/[^/]+": znodes.TopicZNode,
    r"/brokers/topics/[^/]+/partitions/\d+/state": znodes.PartitionStateZNode,
    r"/cluster/id": znodes.ClusterId,
    r"/feature": znodes.FeatureState,
    r"/latest_producer_id_block": znodes.ProducerIdBlock,
    r"/config/(topics|brokers)/[^/]+": znodes.EntityConfig,
    r"/config/changes/config_change_\d+": znodes.ConfigChange,
}


@pytest.fixture(scope="module")
def addresses(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield the addresses of ZooKeeper and Kafka."""
    folder = tmp_path_factory.mktemp("zookeeper-mode")
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(folder / "zookeeper", fsync=False))
            kafka = stack.enter_context(
                apache_kafka(folder / "kafka", zookeeper=server.address, settings={"broker.rack": "a"})
            )
        yield server.address, kafka.bootstrap


async def tree(store: Store, path: str = "/") -> dict[str, bytes]:
    """Return every node's data by path, without ZooKeeper's own."""
    found = {path: (await store.get(path)).data}
    for name in await store.children(path):
        if (path, name) != ("/", "zookeeper"):
            found |= await tree(store, f"{path.rstrip('/')}/{name}")
    return found


def test_every_node_of_kafka_is_understood_and_written_back_alike(addresses: tuple[str, str]) -> None:
    from kafka import KafkaProducer
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

    address, bootstrap = addresses
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        config = {"retention.ms": "1000", "cleanup.policy": "compact"}
        admin.create_topics([NewTopic("small", 3, 1), NewTopic("large", 12, 1, topic_configs=config)])
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "small", {"flush.ms": "7"})])
    with closing(KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        producer.send("small", b"makes the broker take producer ids").get(120)

    async def read() -> dict[str, bytes]:
        store = await ZooKeeperStore.connect(address)
        try:
            return await tree(store)
        finally:
            await store.close()

    found = asyncio.run(read())
    met = set()
    for path, data in found.items():
        kinds = [kind for pattern, kind in KINDS.items() if re.fullmatch(pattern, path)]
        if kinds:
            assert kinds[0].decode(data, path).encode() == data
            met.add(kinds[0])
        else:
            assert data == b"", f"{path} has data that no class of ours stands for"
    assert met == set(KINDS.values())
    assert found.keys() >= set(znodes.PERSISTENT_PATHS)


def test_kafka_acts_on_nodes_that_we_write(addresses: tuple[str, str]) -> None:
    from kafka.admin import KafkaAdminClient

    address, bootstrap = addresses
    topic = znodes.TopicZNode(
        topic_id="AAAAAAAAQACAAAAAAAAAAQ",
        partitions={number: ReplicaAssignment((1,)) for number in range(2)},
    )

    async def write() -> None:
        store = await ZooKeeperStore.connect(address)
        try:
            async with asyncio.timeout(120):
                await ensure_paths(store, znodes.PERSISTENT_PATHS)
                config = znodes.EntityConfig({"retention.ms": "5000"})
                await store.create(znodes.EntityConfig.topic_path("ours"), config.encode())
                await store.create(znodes.TopicZNode.path("ours"), topic.encode())
                for partition in topic.partitions:
                    state = await appears(store, znodes.PartitionStateZNode.path("ours", partition))
                    assert znodes.PartitionStateZNode.decode(state, "state").leader == 1
                target = znodes.ReassignPartitions({TopicPartition("ours", 0): (1,)})
                await store.create(target.PATH, target.encode())
                while await store.exists(target.PATH):
                    await asyncio.sleep(0.02)
        finally:
            await store.close()

    asyncio.run(write())
    leaders: list[int] = []
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        for _ in range(1200):  # the nodes exist before the broker knows of them
            (described,) = admin.describe_topics(["ours"])
            leaders = [partition["leader_id"] for partition in described["partitions"]]
            if leaders == [1, 1]:
                break
            time.sleep(0.1)
    assert leaders == [1, 1]


async def appears(store: Store, path: str) -> bytes:
    """Wait for a node, and return its data."""
    while await store.exists(path) is None:
        await asyncio.sleep(0.02)
    return (await store.get(path)).data
