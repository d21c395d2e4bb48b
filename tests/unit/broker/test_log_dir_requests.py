"""AlterReplicaLogDirs and DescribeLogDirs requests, and reassignments to brokers with a failed disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from restow.cluster.broker.creation import RequestedTopic
from restow.cluster.controller import ReassignmentTarget
from restow.cluster.embedded import EmbeddedCluster
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from restow.wire.records import Record, build
from tests.unit.broker.conversations import Client, run

ALTER, DESCRIBE = 34, 35
PARTITION = TopicPartition("t", 0)
BATCH = build([Record(number, 1, None, bytes(1000)) for number in range(100)])


async def create(cluster: EmbeddedCluster, *replicas: int) -> None:
    creation = cluster.brokers[0].services.creation
    await creation.create(await creation.plan(RequestedTopic(name="t", by_hand={0: replicas})))
    for broker in cluster.brokers.values():
        metadata = broker.services.metadata
        assert await metadata.until(lambda it=metadata: it.partition_count("t") == 1, 120)


async def connect(cluster: EmbeddedCluster, broker: int = 0) -> Client:
    return await Client.connect(int(cluster.brokers[broker].address.rpartition(":")[2]))


async def alter(client: Client, version: int, **targets: dict[str, list[int]]) -> dict[tuple[str, int], int]:
    """Send paths with their topics and partitions; return the error codes."""
    make = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topic = make.AlterReplicaLogDirTopic
    body = AlterReplicaLogDirsRequest(
        dirs=[
            make(path=path, topics=[topic(name=name, partitions=numbers) for name, numbers in topics.items()])
            for path, topics in targets.items()
        ]
    )
    client.ask(ALTER, version, 1, body)
    answer = await client.answer(ALTER, version)
    return {
        (each.topic_name, result.partition_index): result.error_code
        for each in answer.results
        for result in each.partitions
    }


async def describe(client: Client, version: int, *topics: str) -> dict[str, Any]:
    """Return each log dir's result by path."""
    asked = [DescribeLogDirsRequest.DescribableLogDirTopic(topic=each, partitions=[0]) for each in topics]
    client.ask(DESCRIBE, version, 2, DescribeLogDirsRequest(topics=asked if topics else None))
    answer = await client.answer(DESCRIBE, version)
    return {each.log_dir: each for each in answer.results}


@pytest.mark.parametrize("version", [1, 2])
def test_alter_replica_log_dirs_answers_good_and_bad_parts(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, log_dirs=2, data=tmp_path, fsync=False) as cluster:
            await create(cluster, 0)
            services = cluster.brokers[0].services
            await services.replicas.append({PARTITION: BATCH}, -1, 1000)
            first, second = cluster.brokers[0].options.log_dirs
            client = await connect(cluster)
            codes = await alter(
                client, version, **{second: {"t": [0, 7], "absent": [0]}, "/nowhere": {"other": [0]}}
            )
            assert codes == {
                ("t", 0): ErrorCode.NONE,
                ("t", 7): ErrorCode.REPLICA_NOT_AVAILABLE,
                ("absent", 0): ErrorCode.REPLICA_NOT_AVAILABLE,
                ("other", 0): ErrorCode.LOG_DIR_NOT_FOUND,
            }
            while services.logs.futures.partitions:
                await asyncio.sleep(0.01)
            assert services.logs.directory_of(PARTITION).path == second
            found = await describe(client, 4)
            assert found[first].topics == []
            (topic,) = found[second].topics
            assert topic.partitions[0].partition_size == len(BATCH)

    run(scenario())


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_log_dirs_shows_ongoing_move(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, log_dirs=2, data=tmp_path, fsync=False) as cluster:
            await create(cluster, 0)
            services = cluster.brokers[0].services
            for _ in range(10):
                await services.replicas.append({PARTITION: BATCH}, -1, 1000)
            services.quotas.log_dirs.limit(1)
            first, second = cluster.brokers[0].options.log_dirs
            client = await connect(cluster)
            assert await alter(client, 2, **{second: {"t": [0]}}) == {("t", 0): 0}
            future = services.logs.futures.get(PARTITION)
            assert future is not None
            while not future.end_offset:
                await asyncio.sleep(0.01)
            found = await describe(client, version, "t")
            (present,) = found[first].topics[0].partitions
            (copied,) = found[second].topics[0].partitions
            assert (present.is_future_key, present.offset_lag) == (False, 0)
            assert present.partition_size == 10 * len(BATCH)
            assert (copied.is_future_key, copied.offset_lag) == (True, 900)
            assert copied.partition_size == len(BATCH)
            if version >= 4:
                assert found[second].total_bytes >= found[second].usable_bytes > 0
            assert await alter(client, 2, **{first: {"t": [0]}}) == {("t", 0): 0}
            assert (await describe(client, version, "t"))[second].topics == []

    run(scenario())


def test_log_dir_of_an_embedded_cluster_is_as_large_as_what_it_held_and_what_was_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=1000, used=980, free=20))
        async with EmbeddedCluster(1, data=tmp_path, fsync=False) as cluster:
            await create(cluster, 0)
            client = await connect(cluster)
            (log_dir,) = cluster.brokers[0].options.log_dirs
            held = sum(each.stat().st_size for each in Path(log_dir).rglob("*") if each.is_file())
            (found,) = (await describe(client, 4, "t")).values()
            assert (found.total_bytes, found.usable_bytes) == (20 + held, 20)
            monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=1000, used=995, free=5))
            (found,) = (await describe(client, 4, "t")).values()
            assert (found.total_bytes, found.usable_bytes) == (20 + held, 5)

    run(scenario())


def test_describe_log_dirs_shows_failed_log_dir(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, log_dirs=2, data=tmp_path, fsync=False) as cluster:
            await create(cluster, 0)
            services = cluster.brokers[0].services
            first, second = cluster.brokers[0].options.log_dirs
            services.logs.directories[1].disk.fail("gone")
            client = await connect(cluster)
            codes = await alter(client, 2, **{second: {"t": [0], "absent": [0]}})
            assert set(codes.values()) == {ErrorCode.KAFKA_STORAGE_ERROR}
            found = await describe(client, 4)
            assert found[second].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert found[first].error_code == 0

    run(scenario())


def test_reassignment_to_broker_with_offline_log_dir_uses_another(tmp_path: Path) -> None:
    """KAFKA-10314."""

    async def scenario() -> None:
        async with EmbeddedCluster(2, log_dirs=2, data=tmp_path, fsync=False) as cluster:
            await create(cluster, 0)
            await cluster.brokers[0].services.replicas.append({PARTITION: BATCH}, -1, 1000)
            target = cluster.brokers[1].services
            target.logs.directories[0].disk.fail("gone")
            while True:
                active = [each.services.controller for each in cluster.brokers.values()]
                controller = next((each for each in active if each.is_active), None)
                if controller is not None:
                    break
                await asyncio.sleep(0.01)
            assert await controller.alter_reassignments({PARTITION: ReassignmentTarget((1,))}) == {
                PARTITION: None
            }
            while await controller.list_reassignments(None):
                await asyncio.sleep(0.01)
            assert target.logs.directory_of(PARTITION) is target.logs.directories[1]
            moved = target.replicas.partition(PARTITION)
            assert moved is not None
            assert moved.log.size_bytes == len(BATCH)

    run(scenario())
