"""Every offered version of every request gets a readable response."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.handlers import served_versions
from restow.wire import messages
from restow.wire.batches import header_at
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import REQUESTS
from restow.wire.records import Record, build
from tests.unit.broker.conversations import Client, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from uuid import UUID

TOPIC = "t"
# Controller requests change the broker under test, and other tests cover them.
ORDERS = {4, 5, 6, 7}
PLAIN = [
    (key, version) for key, served in served_versions().items() if key not in ORDERS for version in served
]


def batch() -> bytes:
    return build([Record(0, 1_000, b"key", b"value")])


def produce() -> Any:
    request = messages.ProduceRequest
    data = request.TopicProduceData
    return request(
        acks=-1,
        timeout_ms=1000,
        topic_data=[data(name=TOPIC, partition_data=[data.PartitionProduceData(index=0, records=batch())])],
    )


def fetch(topic_id: UUID) -> Any:
    request = messages.FetchRequest
    topic = request.FetchTopic
    partition = topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return request(
        max_wait_ms=0,
        min_bytes=0,
        topics=[topic(topic=TOPIC, topic_id=topic_id, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )


def list_offsets() -> Any:
    request = messages.ListOffsetsRequest
    topic = request.ListOffsetsTopic
    return request(
        topics=[topic(name=TOPIC, partitions=[topic.ListOffsetsPartition(partition_index=0, timestamp=-2)])]
    )


def metadata() -> Any:
    request = messages.MetadataRequest
    return request(topics=[request.MetadataRequestTopic(name=TOPIC)])


def commit() -> Any:
    request = messages.OffsetCommitRequest
    topic = request.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    return request(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[topic(name=TOPIC, partitions=[partition])],
    )


def fetch_offsets() -> Any:
    request = messages.OffsetFetchRequest
    return request(
        group_id="g",
        topics=[request.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
        groups=[request.OffsetFetchRequestGroup(group_id="g", topics=None)],
    )


def describe_configs() -> Any:
    request = messages.DescribeConfigsRequest
    resource = request.DescribeConfigsResource
    return request(
        resources=[
            resource(resource_type=2, resource_name=TOPIC, configuration_keys=None),
            resource(resource_type=4, resource_name="0", configuration_keys=["num.partitions"]),
        ],
        include_synonyms=True,
    )


def bodies(topic_id: UUID) -> dict[int, Callable[[], Any]]:
    """Return requests with something to answer; other requests are sent empty."""
    return {
        0: produce,
        1: lambda: fetch(topic_id),
        2: list_offsets,
        3: metadata,
        8: commit,
        9: fetch_offsets,
        10: lambda: messages.FindCoordinatorRequest(key="g", coordinator_keys=["g"]),
        15: lambda: messages.DescribeGroupsRequest(groups=["g"]),
        18: lambda: messages.ApiVersionsRequest(client_software_name="t", client_software_version="1"),
        22: lambda: messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        32: describe_configs,
        35: lambda: messages.DescribeLogDirsRequest(topics=None),
        42: lambda: messages.DeleteGroupsRequest(groups_names=["nobody"]),
        43: lambda: messages.ElectLeadersRequest(topic_partitions=None, timeout_ms=1000),
        68: lambda: messages.ConsumerGroupHeartbeatRequest(
            group_id="new",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        ),
        69: lambda: messages.ConsumerGroupDescribeRequest(group_ids=["new", "g"]),
    }


def check(key: int, version: int, answer: Any) -> None:
    """Check the responses whose content is known."""
    if key == 0:
        (produced,) = answer.responses[0].partition_responses
        assert produced.error_code == 0
    elif key == 1:
        (fetched,) = answer.responses[0].partitions
        assert fetched.error_code == 0
        assert header_at(fetched.records).count == 1
    elif key == 2:
        (found,) = answer.topics[0].partitions
        assert (found.error_code, found.offset) == (0, 0)
    elif key == 3:
        assert (answer.topics[0].name, answer.topics[0].error_code) == (TOPIC, 0)
        assert [each.leader_id for each in answer.topics[0].partitions] == [0]
    elif key == 8:
        assert answer.topics[0].partitions[0].error_code == 0
    elif key == 9:
        topics = answer.topics if version < 8 else answer.groups[0].topics
        assert topics[0].partitions[0].committed_offset == 1
    elif key == 32:
        assert [result.error_code for result in answer.results] == [0, 0]
        assert len(answer.results[0].configs) > 20
        assert [(each.name, each.value) for each in answer.results[1].configs] == [("num.partitions", "1")]


async def prepared(cluster: EmbeddedCluster) -> Client:
    """Create a topic with a record, and a group with a commit."""
    services = cluster.brokers[0].services
    client = await Client.connect(int(cluster.brokers[0].address.rpartition(":")[2]))
    known = services.metadata
    assert services.creation.create_in_passing(TOPIC)
    assert services.creation.create_in_passing("__consumer_offsets")
    assert await known.until(lambda: known.partition_count("__consumer_offsets") == 50, 120)
    assert await known.until(lambda: known.partition_count(TOPIC) == 1, 120)
    for key, body in ((0, produce()), (8, commit())):
        while True:
            client.ask(key, 8, 1, body)
            answer = await client.answer(key, 8)
            partition = (
                answer.responses[0].partition_responses if key == 0 else answer.topics[0].partitions
            )[0]
            if partition.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                break
            await asyncio.sleep(0.02)
        assert partition.error_code == 0
    return client


def test_broker_answers_every_version(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One broker serves all versions, because that is quick."""

    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await prepared(cluster)
            topic_id = cluster.brokers[0].services.metadata.topics[TOPIC].topic_id
            assert topic_id is not None
            made = bodies(topic_id)
            for number, (key, version) in enumerate(PLAIN):
                body = made[key]() if key in made else REQUESTS[key]()
                client.ask(key, version, number, body)
                asked = f"{REQUESTS[key].__name__} v{version}"
                frame = asyncio.create_task(client.answer(key, version))
                closed = asyncio.create_task(client.is_closed.wait())
                await asyncio.wait((frame, closed), return_when=asyncio.FIRST_COMPLETED)
                assert frame.done(), f"{asked} closed the connection: {caplog.text}"
                closed.cancel()
                check(key, version, frame.result())

    with caplog.at_level(logging.INFO):
        run(scenario())


@pytest.mark.parametrize("key", sorted(ORDERS - {7}))
def test_request_of_earlier_controller_epoch_is_refused(tmp_path: Path, key: int) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await Client.connect(int(cluster.brokers[0].address.rpartition(":")[2]))
            for version in served_versions()[key]:
                epoch = cluster.brokers[0].services.controller_requests.broker_epoch
                earlier = REQUESTS[key](controller_id=9, controller_epoch=0, broker_epoch=epoch)
                client.ask(key, version, 1, earlier)
                assert (await client.answer(key, version)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
                client.ask(key, version, 1, REQUESTS[key](controller_epoch=5, broker_epoch=0))
                assert (await client.answer(key, version)).error_code == ErrorCode.STALE_BROKER_EPOCH
            assert cluster.brokers[0].services.metadata.controller_id == 0

    run(scenario())
