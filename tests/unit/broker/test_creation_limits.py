"""Limits of topics and partitions that a client can create: per request, and by auto-creation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.cluster.controller import create_topic
from restow.cluster.embedded import EmbeddedCluster
from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from tests.clock import HandClock
from tests.unit.broker.conversations import Client, run
from tests.unit.broker.harm import port_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def create(*counts: int) -> Any:
    """Build a request that only validates topics with that many partitions."""
    request = messages.CreateTopicsRequest
    topics = [
        request.CreatableTopic(
            name=f"t{number}", num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        for number, count in enumerate(counts)
    ]
    return request(topics=topics, timeout_ms=1000, validate_only=True)


def by_hand(partitions: int) -> Any:
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic
    replicas = [
        topic.CreatableReplicaAssignment(partition_index=each, broker_ids=[0]) for each in range(partitions)
    ]
    return topic(name="hand", num_partitions=-1, replication_factor=-1, assignments=replicas, configs=[])


async def codes(client: Client, body: Any) -> list[ErrorCode]:
    client.ask(19, 5, 1, body)
    return [ErrorCode.of(each.error_code) for each in (await client.answer(19, 5)).topics]


def test_create_topics_limits_partitions_over_all_topics(tmp_path: Path) -> None:
    refused = ErrorCode.POLICY_VIOLATION

    async def scenario() -> None:
        properties = {"num.partitions": "4000"}
        async with EmbeddedCluster(data=tmp_path, fsync=False, properties=properties) as cluster:
            client = await Client.connect(port_of(cluster))
            assert await codes(client, create(5000, 5000)) == [ErrorCode.NONE] * 2
            assert await codes(client, create(5000, 5000, 1)) == [refused] * 3
            assert await codes(client, create(9000, 9000, 9000, 9000, 9000)) == [refused] * 5
            assert await codes(client, create(-1, -1)) == [ErrorCode.NONE] * 2
            assert await codes(client, create(-1, -1, -1)) == [refused] * 3
            request = create(9000)
            request.topics.append(by_hand(1000))
            assert await codes(client, request) == [ErrorCode.NONE] * 2
            request.topics[1] = by_hand(1001)
            assert await codes(client, request) == [refused] * 2

    run(scenario())


def grow(*counts: tuple[str, int]) -> Any:
    request = messages.CreatePartitionsRequest
    topics = [
        request.CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts
    ]
    return request(topics=topics, timeout_ms=1000, validate_only=True)


def test_create_partitions_limits_partitions_over_all_topics(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            services = cluster.brokers[0].services
            for name in ("a", "b"):
                assert services.creation.create_in_passing(name)
            known = services.metadata
            assert await known.until(lambda: len(known.topics) == 2, 60)
            client = await Client.connect(port_of(cluster))
            for counts, expected in (
                ((5001, 5001), [ErrorCode.NONE] * 2),
                ((5001, 5002), [ErrorCode.POLICY_VIOLATION] * 2),
                ((9000, 9000), [ErrorCode.POLICY_VIOLATION] * 2),
            ):
                client.ask(37, 1, 1, grow(*zip("ab", counts, strict=True)))
                found = (await client.answer(37, 1)).results
                assert [ErrorCode.of(each.error_code) for each in found] == expected

    run(scenario())


def test_auto_created_topics_are_limited_at_once_and_by_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are answered as unknown, and clients ask again."""

    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            services = cluster.brokers[0].services
            clock = HandClock(0.0)
            monkeypatch.setattr(services.creation, "_clock", clock)
            monkeypatch.setattr(services.creation, "_allowed_s", 0.0)
            client = await Client.connect(port_of(cluster))
            request = messages.MetadataRequest
            names = [f"t{number}" for number in range(1000)]
            body = request(topics=[request.MetadataRequestTopic(name=name) for name in names])
            client.ask(3, 1, 1, body)
            told = [ErrorCode.of(each.error_code) for each in (await client.answer(3, 1)).topics]
            assert told[:100] == [ErrorCode.LEADER_NOT_AVAILABLE] * 100
            assert told[100:] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 900
            known = services.metadata
            assert await known.until(lambda: len(known.topics) == 100, 240)
            clock.now_s = 1.0
            client.ask(3, 1, 1, body)
            told = [ErrorCode.of(each.error_code) for each in (await client.answer(3, 1)).topics]
            assert told.count(ErrorCode.LEADER_NOT_AVAILABLE) == 10
            assert await known.until(lambda: len(known.topics) == 110, 240)

    run(scenario())


def test_refused_topic_names_are_not_remembered_without_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        properties = {"default.replication.factor": "3"}
        async with EmbeddedCluster(data=tmp_path, fsync=False, properties=properties) as cluster:
            creation = cluster.brokers[0].services.creation
            monkeypatch.setattr(creation, "_is_allowed_one_more", lambda: True)
            for number in range(2500):
                assert not creation.create_in_passing(f"t{number}")
            assert len(creation._complaints) <= 1000

    run(scenario())


def test_create_partitions_knows_a_topic_that_no_broker_has_heard_of_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            services = cluster.brokers[0].services
            client = await Client.connect(port_of(cluster))
            await create_topic(services.store, "new", {0: (0,)}, {}, "A" * 22)
            assert services.metadata.partition_count("new") == 0
            missing = ("missing", "", ".", "new/partitions", "n\0w", "../../controller")
            client.ask(37, 1, 1, grow(("new", 2), *((name, 2) for name in missing)))
            codes = [each.error_code for each in (await client.answer(37, 1)).results]
            assert codes == [ErrorCode.NONE] + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(missing)

    run(scenario())
