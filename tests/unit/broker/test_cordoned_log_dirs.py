"""Cordoned log dirs get no new replicas; brokers that have no others are left out of placement (KIP-1066)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.broker.creation import RequestedTopic
from restow.cluster.config.table import InvalidConfig
from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.store.znodes import BrokerRegistration
from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from tests.unit.broker.conversations import Client, run
from tests.unit.broker.harm import port_of, until

if TYPE_CHECKING:
    from pathlib import Path


def dirs_of(cluster: EmbeddedCluster, broker: int) -> list[str]:
    return [each.path for each in cluster.brokers[broker].services.logs.directories]


async def cordon(client: Client, broker: str, value: str) -> ErrorCode:
    request = messages.IncrementalAlterConfigsRequest
    resource = request.AlterConfigsResource
    config = resource.AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=value)
    body = request(
        resources=[resource(resource_type=4, resource_name=broker, configs=[config])], validate_only=False
    )
    client.ask(44, 1, 1, body)
    return ErrorCode.of((await client.answer(44, 1)).responses[0].error_code)


async def told(client: Client, version: int = 5) -> list[bool]:
    client.ask(35, version, 1, messages.DescribeLogDirsRequest(topics=None))
    return [each.is_cordoned for each in (await client.answer(35, version)).results]


async def create(cluster: EmbeddedCluster, new: RequestedTopic) -> dict[int, tuple[int, ...]]:
    """Create the topic, wait until it is known, and return its replicas."""
    services = cluster.brokers[0].services
    planned = await services.creation.plan(new)
    await services.creation.create(planned)
    known = services.metadata
    assert await known.until(lambda: known.partition_count(new.name) == len(planned.assignment), 60)
    return dict(planned.assignment)


def test_cordoned_log_dir_is_described_and_gets_no_new_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False, log_dirs=3) as cluster:
            client = await Client.connect(port_of(cluster))
            paths = dirs_of(cluster, 0)
            assert await told(client) == [False, False, False]
            assert await cordon(client, "0", f"{paths[0]},{paths[2]}") == ErrorCode.NONE
            logs = cluster.brokers[0].services.logs
            await until(lambda: logs.cordoned() == {paths[0], paths[2]})
            assert await told(client) == [True, False, True]
            assert await told(client, version=4) == [False, False, False]
            await create(cluster, RequestedTopic(name="t", partitions=5, replication_factor=1))
            await until(lambda: len(logs.partitions) == 5)
            assert [len(each.logs) for each in logs.directories] == [0, 5, 0]
            assert await cordon(client, "0", "") == ErrorCode.NONE
            await until(lambda: not logs.cordoned())
            await create(cluster, RequestedTopic(name="u", partitions=4, replication_factor=1))
            await until(lambda: len(logs.partitions) == 9)
            assert [len(each.logs) for each in logs.directories] == [2, 5, 2]

    run(scenario())


@pytest.mark.parametrize("how", ["*", "all by name"])
def test_placement_leaves_out_broker_with_only_cordoned_log_dirs(tmp_path: Path, how: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=3, data=tmp_path, fsync=False, log_dirs=2) as cluster:
            client = await Client.connect(port_of(cluster, 1))
            services = cluster.brokers[1].services
            epoch = services.controller_requests.broker_epoch
            value = how if how == "*" else ",".join(dirs_of(cluster, 1))
            assert await cordon(client, "1", value) == ErrorCode.NONE
            path = BrokerRegistration.path(1)

            async def is_cordoned() -> bool:
                return BrokerRegistration.decode((await services.store.get(path)).data, path).cordoned

            while not await is_cordoned():
                await services.clock.sleep(0.01)
            assert (await services.store.get(path)).stat.czxid == epoch
            placed = await create(cluster, RequestedTopic(name="t", partitions=6, replication_factor=2))
            assert {replica for replicas in placed.values() for replica in replicas} == {0, 2}
            await expand(cluster, "t", 9)
            known = cluster.brokers[0].services.metadata
            assert not any(1 in each.replicas for each in known.partitions("t"))
            assert cluster.brokers[2].services.creation.create_in_passing("passing")
            assert await known.until(lambda: known.partition_count("passing") == 1, 60)
            assert 1 not in known.partitions("passing")[0].replicas
            by_hand = await create(cluster, RequestedTopic(name="hand", by_hand={0: (1,)}))
            assert by_hand == {0: (1,)}
            assert await cordon(client, "1", "") == ErrorCode.NONE
            while await is_cordoned():
                await services.clock.sleep(0.01)
            placed = await create(cluster, RequestedTopic(name="after", partitions=6, replication_factor=3))
            assert {replica for replicas in placed.values() for replica in replicas} == {0, 1, 2}

    run(scenario())


async def expand(cluster: EmbeddedCluster, topic: str, count: int) -> None:
    request = messages.CreatePartitionsRequest
    controller = cluster.brokers[0].services.metadata.controller_id
    client = await Client.connect(port_of(cluster, controller))
    wanted = request.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    client.ask(37, 1, 1, request(topics=[wanted], timeout_ms=60_000, validate_only=False))
    assert (await client.answer(37, 1)).results[0].error_code == 0
    known = cluster.brokers[0].services.metadata
    assert await known.until(lambda: known.partition_count(topic) == count, 60)


def test_cordoned_log_dirs_are_read_from_file_and_must_be_own_log_dirs(tmp_path: Path) -> None:
    async def scenario() -> None:
        properties: dict[str, Any] = {"cordoned.log.dirs": "*"}
        async with EmbeddedCluster(data=tmp_path / "a", fsync=False, properties=properties) as cluster:
            client = await Client.connect(port_of(cluster))
            assert await told(client) == [True]
            for strange in ("/nowhere", f"{dirs_of(cluster, 0)[0]},/nowhere", "*,/nowhere"):
                assert await cordon(client, "0", strange) == ErrorCode.INVALID_REQUEST
            assert await cordon(client, "", "*") == ErrorCode.INVALID_REQUEST
        with pytest.raises(InvalidConfig, match="/nowhere is none of"):
            await EmbeddedCluster(
                data=tmp_path / "b", fsync=False, properties={"cordoned.log.dirs": "/nowhere"}
            ).start()

    run(scenario())
