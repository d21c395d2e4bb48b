"""Cordoned log dirs (KIP-1066) and large requests: the embedded cluster answers like Kafka 4.3.1."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4, kafka_jars
from restow.cluster.embedded import EmbeddedCluster
from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from tests.conftest import needs_kafka
from tests.unit.broker.conversations import Client, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from harness.apache import Cluster

NONE = ErrorCode.NONE


class Asked:
    """One broker with two log dirs, asked over the wire."""

    def __init__(self, client: Client, broker: int) -> None:
        self._client = client
        self.broker = broker

    async def ask(self, key: int, version: int, body: Any) -> Any:
        self._client.ask(key, version, 1, body)
        return await self._client.answer(key, version)

    async def dirs(self) -> dict[str, tuple[bool, set[tuple[str, int]]]]:
        """Return by path whether it is cordoned, and its replicas."""
        found = await self.ask(35, 5, messages.DescribeLogDirsRequest(topics=None))
        return {
            each.log_dir: (
                each.is_cordoned,
                {(topic.name, it.partition_index) for topic in each.topics for it in topic.partitions},
            )
            for each in found.results
        }

    async def cordon(self, value: str, resource_name: str | None = None) -> ErrorCode:
        request = messages.IncrementalAlterConfigsRequest
        resource = request.AlterConfigsResource
        config = resource.AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=value)
        name = str(self.broker) if resource_name is None else resource_name
        asked = resource(resource_type=4, resource_name=name, configs=[config])
        answer = await self.ask(44, 1, request(resources=[asked], validate_only=False))
        return ErrorCode.of(answer.responses[0].error_code)

    async def until_told(self, *cordoned: str) -> None:
        """Wait until exactly these log dirs are cordoned."""
        while {path for path, (is_so, _) in (await self.dirs()).items() if is_so} != set(cordoned):
            await asyncio.sleep(0.1)

    async def create(self, *counts: int, by_hand: bool = False, check: bool = False) -> set[ErrorCode]:
        request = messages.CreateTopicsRequest
        topic = request.CreatableTopic
        made = topic.CreatableReplicaAssignment
        topics = [
            topic(
                name=f"t{len(counts)}-{number}-{count}" + ("-hand" if by_hand else ""),
                num_partitions=-1 if by_hand else count,
                replication_factor=-1 if by_hand else 1,
                assignments=[made(partition_index=each, broker_ids=[self.broker]) for each in range(count)]
                if by_hand
                else [],
                configs=[],
            )
            for number, count in enumerate(counts)
        ]
        answer = await self.ask(19, 7, request(topics=topics, timeout_ms=60_000, validate_only=check))
        return {ErrorCode.of(each.error_code) for each in answer.topics}

    async def grow(self, name: str, count: int) -> ErrorCode:
        request = messages.CreatePartitionsRequest
        topic = request.CreatePartitionsTopic(name=name, count=count, assignments=None)
        answer = await self.ask(37, 3, request(topics=[topic], timeout_ms=60_000, validate_only=False))
        return ErrorCode.of(answer.results[0].error_code)

    async def move(self, path: str, name: str) -> ErrorCode:
        request = messages.AlterReplicaLogDirsRequest
        to = request.AlterReplicaLogDir
        topic = to.AlterReplicaLogDirTopic(name=name, partitions=[0])
        answer = await self.ask(34, 2, request(dirs=[to(path=path, topics=[topic])]))
        return ErrorCode.of(answer.results[0].partitions[0].error_code)


@asynccontextmanager
async def client(cluster: EmbeddedCluster | Cluster) -> AsyncIterator[Client]:
    connected = await Client.connect(int(cluster.bootstrap.rpartition(":")[2]))
    try:
        yield connected
    finally:
        connected.connection.close()
        await connected.is_closed.wait()


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Asked]:
    async with EmbeddedCluster(data=folder, fsync=False, log_dirs=2) as cluster, client(cluster) as connected:
        yield Asked(connected, 0)


@asynccontextmanager
async def apache(folder: Path) -> AsyncIterator[Asked]:
    with needs_kafka():
        kafka_jars(KAFKA_4)
    with apache_kafka(folder, version=KAFKA_4, log_dirs=2) as cluster:
        async with client(cluster) as connected:
            yield Asked(connected, 1)


@pytest.mark.parametrize("start", [embedded, pytest.param(apache, id="4.3.1", marks=pytest.mark.apache)])
def test_cordoned_log_dirs_and_large_requests_work_like_kafka(start: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with start(tmp_path) as asked:
            await cordons(asked)
            await limits(asked)

    run(scenario())


async def cordons(asked: Asked) -> None:
    refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    one, other = sorted(await asked.dirs())
    assert await asked.cordon(one) == NONE
    await asked.until_told(one)
    assert await asked.create(4) == {NONE}
    replicas = {("t1-0-4", number) for number in range(4)}
    while (found := await asked.dirs())[other][1] != replicas:
        await asyncio.sleep(0.1)
    assert found[one][1] == set()
    assert [await asked.move(one, "t1-0-4"), await asked.move(one, "not-yet")] == [refused] * 2
    assert await asked.cordon(other) == NONE
    await asked.until_told(other)
    assert await asked.move(other, "t1-0-4") == refused
    assert await asked.cordon(f"{one},{other}") == NONE
    await asked.until_told(one, other)
    while await asked.create(3, check=True) == {NONE}:  # the controller hears of it with the next heartbeat
        await asyncio.sleep(0.1)
    assert await asked.create(3) == {ErrorCode.INVALID_REPLICATION_FACTOR}
    assert await asked.grow("t1-0-4", 6) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert await asked.create(2, by_hand=True) == {NONE}
    assert await asked.cordon("/nowhere") == ErrorCode.INVALID_REQUEST
    assert await asked.cordon("*", resource_name="") == ErrorCode.INVALID_REQUEST
    assert await asked.cordon("") == NONE
    await asked.until_told()
    assert await asked.cordon("*") == NONE
    await asked.until_told(one, other)
    assert await asked.cordon("") == NONE
    await asked.until_told()


async def limits(asked: Asked) -> None:
    """Kafka counts topics, too: two topics may have 9,998 partitions, here 10,000."""
    too_many = {ErrorCode.POLICY_VIOLATION}
    assert await asked.create(4000, 4000, check=True) == {NONE}
    assert await asked.create(9999, check=True) == {NONE}
    assert await asked.create(4999, 4999, check=True) == {NONE}
    assert await asked.create(5000, 5001, check=True) == too_many
    assert await asked.create(9000, 9000, 9000, 9000, 9000, check=True) == too_many
