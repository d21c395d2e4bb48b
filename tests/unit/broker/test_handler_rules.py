"""Refusals of the handlers, over a real connection to a cluster of two brokers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from restow.cluster.broker.creation import RequestedTopic
from restow.cluster.embedded import EmbeddedCluster
from restow.wire import messages
from restow.wire.batches import TRANSACTIONAL_BIT
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build
from tests.unit.broker.conversations import Client, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

PRODUCE, FETCH, METADATA = 0, 1, 3
NO_AUTO = {"auto.create.topics.enable": "false"}
GOOD = build([Record(0, 1_000, b"key", b"value")])
TRANSACTIONAL = build(
    [Record(0, 1, None, b"v")],
    producer_id=1,
    producer_epoch=0,
    base_sequence=0,
    attributes=TRANSACTIONAL_BIT,
)


class Bench:
    """Two brokers, a topic that broker 0 leads, and a connection to each broker."""

    def __init__(self, cluster: EmbeddedCluster, clients: list[Client]) -> None:
        self.cluster = cluster
        self.clients = clients
        self.controller = cluster.brokers[0].services.metadata.controller_id
        topic_id = cluster.brokers[0].services.metadata.topics["t"].topic_id
        assert topic_id is not None
        self.topic_id = topic_id

    async def ask(self, key: int, version: int, body: Any, *, broker: int = 0) -> Any:
        self.clients[broker].ask(key, version, 1, body)
        return await self.clients[broker].answer(key, version)

    async def produced(self, version: int = 9, **fields: Any) -> Any:
        body = produce(**fields)
        return (await self.ask(PRODUCE, version, body)).responses[0].partition_responses[0]


def on_bench(tmp_path: Path, scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with EmbeddedCluster(2, data=tmp_path, fsync=False, properties=NO_AUTO) as cluster:
            creation = cluster.brokers[0].services.creation
            await creation.create(await creation.plan(RequestedTopic(name="t", by_hand={0: (0, 1)})))
            for broker in cluster.brokers.values():
                metadata = broker.services.metadata
                assert await metadata.until(lambda it=metadata: it.partition_count("t") == 1, 120)
            ports = [int(each.address.rpartition(":")[2]) for each in cluster.brokers.values()]
            await scenario(Bench(cluster, [await Client.connect(port) for port in ports]))

    run(whole())


def produce(
    topic: str = "t", records: bytes | None = GOOD, acks: int = -1, transactional_id: str | None = None
) -> Any:
    data = messages.ProduceRequest.TopicProduceData
    return messages.ProduceRequest(
        acks=acks,
        timeout_ms=120_000,
        transactional_id=transactional_id,
        topic_data=[data(name=topic, partition_data=[data.PartitionProduceData(index=0, records=records)])],
    )


def test_produce_refuses_invalid_batches(tmp_path: Path) -> None:
    damaged = bytearray(GOOD)
    damaged[-1] ^= 1
    cases = [
        ({"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
        ({"records": bytes(damaged)}, ErrorCode.CORRUPT_MESSAGE),
        ({"records": GOOD[:-3]}, ErrorCode.INVALID_RECORD),
        ({"records": b""}, ErrorCode.INVALID_RECORD),
        ({"records": None}, ErrorCode.INVALID_RECORD),
        ({"topic": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "__consumer_offsets"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"records": TRANSACTIONAL}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"records": TRANSACTIONAL, "transactional_id": "x"}, ErrorCode.NOT_ENOUGH_REPLICAS),
    ]

    async def scenario(bench: Bench) -> None:
        for fields, code in cases:
            result = await bench.produced(**fields)
            assert (ErrorCode.of(result.error_code), result.base_offset) == (code, -1), fields
        assert (await bench.produced()).base_offset == 0

    on_bench(tmp_path, scenario)


def test_produce_with_acks_0_has_no_response_and_refusal_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        client = bench.clients[0]
        client.ask(PRODUCE, 9, 1, produce(acks=0))
        client.ask(METADATA, 4, 2, messages.MetadataRequest(topics=[]))
        assert await client.number() == 2
        client.ask(PRODUCE, 9, 3, produce(topic="nowhere", acks=0))
        await client.is_closed.wait()
        assert client.frames.empty()

    on_bench(tmp_path, scenario)


def test_broker_that_does_not_lead_names_the_leader(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        leader = bench.cluster.brokers[0]
        answer = await bench.ask(PRODUCE, 10, produce(), broker=1)
        (refused,) = answer.responses[0].partition_responses
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refused.current_leader.leader_id == 0
        assert [(it.node_id, f"{it.host}:{it.port}") for it in answer.node_endpoints] == [(0, leader.address)]
        as_follower = fetch(bench.topic_id)  # a consumer may read from a follower
        as_follower.replica_state = messages.FetchRequest.ReplicaState(replica_id=0, replica_epoch=-1)
        answer = await bench.ask(FETCH, 16, as_follower, broker=1)
        (refused,) = answer.responses[0].partitions
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refused.current_leader.leader_id == 0

    on_bench(tmp_path, scenario)


def fetch(topic_id: UUID, *, offset: int = 0, session_id: int = 0, epoch: int = -1) -> Any:
    topic = messages.FetchRequest.FetchTopic
    partition = topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=100_000)
    return messages.FetchRequest(
        max_wait_ms=20,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[topic(topic="t", topic_id=topic_id, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )


def test_fetch_with_unknown_topic_id_ends_the_session(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        begun = await bench.ask(FETCH, 13, fetch(bench.topic_id, epoch=0))
        assert begun.session_id > 0
        stranger = UUID(int=99)
        answer = await bench.ask(FETCH, 13, fetch(stranger, session_id=begun.session_id, epoch=1))
        assert (answer.error_code, answer.session_id) == (0, 0)
        (topic,) = answer.responses
        assert (topic.topic_id, topic.partitions[0].error_code) == (stranger, ErrorCode.UNKNOWN_TOPIC_ID)
        answer = await bench.ask(FETCH, 13, fetch(bench.topic_id, session_id=begun.session_id, epoch=2))
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    on_bench(tmp_path, scenario)


def test_waiting_fetch_returns_when_records_are_appended(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        body = fetch(bench.topic_id)
        body.max_wait_ms = 30_000
        reader = await Client.connect(int(bench.cluster.brokers[0].address.rpartition(":")[2]))
        reader.ask(FETCH, 12, 7, body)
        await asyncio.sleep(0.05)
        assert reader.frames.empty()
        await bench.produced()
        answer = await reader.answer(FETCH, 12)
        assert answer.responses[0].partitions[0].records

    on_bench(tmp_path, scenario)


def test_metadata_answers_some_all_no_and_unknown_topics(tmp_path: Path) -> None:
    wanted = messages.MetadataRequest.MetadataRequestTopic

    async def scenario(bench: Bench) -> None:
        async def names(version: int, topics: Any) -> list[tuple[str, int]]:
            body = messages.MetadataRequest(topics=topics, allow_auto_topic_creation=True)
            answer = await bench.ask(METADATA, version, body)
            return [(each.name, each.error_code) for each in answer.topics]

        assert await names(0, []) == [("t", 0)]
        assert await names(1, []) == []
        assert await names(9, None) == [("t", 0)]
        unknown = [("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION)]
        assert await names(9, [wanted(name="u"), wanted(name="a b")]) == unknown
        by_id = [wanted(name=None, topic_id=bench.topic_id), wanted(name=None, topic_id=UUID(int=9))]
        assert await names(12, by_id) == [("t", 0), (None, ErrorCode.UNKNOWN_TOPIC_ID)]

    on_bench(tmp_path, scenario)


def test_coordinators_of_unknown_kinds_are_refused(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        find = messages.FindCoordinatorRequest(key="x", key_type=9, coordinator_keys=["x"])
        assert (await bench.ask(10, 3, find)).error_code == ErrorCode.INVALID_REQUEST
        (batched,) = (await bench.ask(10, 4, find)).coordinators
        assert (batched.key, batched.error_code) == ("x", ErrorCode.INVALID_REQUEST)

    on_bench(tmp_path, scenario)


def test_every_idempotent_producer_gets_an_id_of_its_own(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        plain = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        ids = {(await bench.ask(22, 4, plain, broker=each)).producer_id for each in (0, 1, 0, 1)}
        assert len(ids) == 4

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("key", [19, 20, 37, 43])
def test_topic_changes_need_the_controller(tmp_path: Path, key: int) -> None:
    create = messages.CreateTopicsRequest
    bodies = {
        19: create(topics=[create.CreatableTopic(name="u", num_partitions=1, replication_factor=1)]),
        20: messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000),
        37: messages.CreatePartitionsRequest(
            topics=[messages.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2)],
            timeout_ms=1000,
        ),
        43: messages.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000),
    }
    versions = {19: 5, 20: 5, 37: 2, 43: 2}

    async def scenario(bench: Bench) -> None:
        answer = await bench.ask(key, versions[key], bodies[key], broker=1 - bench.controller)
        if key == 43:
            code = answer.error_code
        else:
            code = (answer.responses if key == 20 else answer.results if key == 37 else answer.topics)[
                0
            ].error_code
        assert code == ErrorCode.NOT_CONTROLLER
        assert set(bench.cluster.brokers[0].services.metadata.topics) == {"t"}

    on_bench(tmp_path, scenario)


def test_config_resources_are_refused_one_by_one(tmp_path: Path) -> None:
    resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource

    def change(kind: int, name: str, config: str, value: str) -> Any:
        entry = resource.AlterableConfig(name=config, config_operation=0, value=value)
        return resource(resource_type=kind, resource_name=name, configs=[entry])

    asked = [
        (change(2, "t", "retention.ms", "77"), 0),
        (change(2, "nowhere", "retention.ms", "77"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (change(4, "1", "log.retention.ms", "5"), ErrorCode.INVALID_REQUEST),
        (change(4, "x", "log.retention.ms", "5"), ErrorCode.INVALID_REQUEST),
        (change(8, "0", "root", "DEBUG"), ErrorCode.INVALID_REQUEST),
        (change(4, "0", "broker.id", "9"), ErrorCode.INVALID_REQUEST),
    ]

    async def scenario(bench: Bench) -> None:
        body = messages.IncrementalAlterConfigsRequest(resources=[each for each, _ in asked])
        answer = await bench.ask(44, 1, body)
        assert [each.error_code for each in answer.responses] == [code for _, code in asked]
        twice = messages.IncrementalAlterConfigsRequest(resources=[asked[0][0]] * 2)
        answer = await bench.ask(44, 1, twice)
        assert {each.error_code for each in answer.responses} == {ErrorCode.INVALID_REQUEST}

    on_bench(tmp_path, scenario)


def test_delete_records_refuses_compacted_and_internal_topics(tmp_path: Path) -> None:
    request = messages.DeleteRecordsRequest
    partition = request.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=0, offset=-1)
    expected = {
        "t": ErrorCode.NONE,
        "compacted": ErrorCode.POLICY_VIOLATION,
        "__consumer_offsets": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }

    async def scenario(bench: Bench) -> None:
        services = bench.cluster.brokers[0].services
        compacted = RequestedTopic(name="compacted", by_hand={0: (0,)}, configs={"cleanup.policy": "compact"})
        await services.creation.create(await services.creation.plan(compacted))
        metadata = services.metadata
        assert await metadata.until(lambda: metadata.partition_count("compacted") == 1, 120)
        body = request(
            topics=[request.DeleteRecordsTopic(name=name, partitions=[partition]) for name in expected],
            timeout_ms=120_000,
        )
        answer = await bench.ask(21, 2, body)
        assert {each.name: each.partitions[0].error_code for each in answer.topics} == expected

    on_bench(tmp_path, scenario)
