"""A broker's lifecycle: registration, a lost session, a failed disk, an orderly stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.broker.broker import BrokerOptions, BrokerRuntime, BrokerServer
from restow.cluster.broker.creation import RequestedTopic
from restow.cluster.broker.registration import BrokerIdTaken, prepare_store, register
from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.store import SessionExpired
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import AdvertisedEndpoint, BrokerRegistration
from restow.errors import InvalidBrokers
from restow.model import TopicPartition
from restow.runtime.chance import SystemChance
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.runtime.network import SystemNetwork
from restow.runtime.ports import HeldPort
from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build
from tests.unit.broker.conversations import Client, run

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.store.session import EmbeddedSession

PARTITION = TopicPartition("t", 0)


async def with_topic(cluster: EmbeddedCluster, replication_factor: int, partitions: int = 1) -> None:
    """Create a topic and wait until every broker knows its leaders."""
    creation = cluster.brokers[0].services.creation
    await creation.create(
        await creation.plan(
            RequestedTopic(name="t", partitions=partitions, replication_factor=replication_factor)
        )
    )
    for broker in cluster.brokers.values():
        metadata = broker.services.metadata
        assert await metadata.until(lambda it=metadata: it.partition_count("t") == partitions, 120)


def leader_of(cluster: EmbeddedCluster) -> int:
    running = next(each for each in cluster.brokers.values() if each.is_running)
    known = running.services.metadata.partition(PARTITION)
    return -1 if known is None else known.leader_id


async def until_led_by_another(cluster: EmbeddedCluster, former: int) -> None:
    while leader_of(cluster) in (former, -1):
        await asyncio.sleep(0.01)


def test_broker_registration_equals_that_of_kafka(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(2, racks=("a", "b"), data=tmp_path, fsync=False) as cluster:
            services = cluster.brokers[1].services
            path = BrokerRegistration.path(1)
            node = await services.store.get(path)
            found = BrokerRegistration.decode(node.data, path)
            host, _, port = cluster.brokers[1].address.rpartition(":")
            assert found.endpoints == (AdvertisedEndpoint("PLAINTEXT", host, int(port)),)
            assert found.rack == "b"
            assert services.controller_requests.broker_epoch == node.stat.czxid

    run(scenario())


def test_second_broker_with_same_id_is_refused() -> None:
    async def scenario() -> None:
        server = EmbeddedStore()
        first, second = server.session(), server.session()
        entry = BrokerRegistration(endpoints=(AdvertisedEndpoint("PLAINTEXT", "h", 1),), timestamp_ms=0)
        assert await prepare_store(first, SystemChance()) == await prepare_store(second, SystemChance())
        epoch = await register(first, 1, entry, SystemClock(), patience_s=0)
        with pytest.raises(BrokerIdTaken, match="broker of id 1 is registered already"):
            await register(second, 1, entry, SystemClock(), patience_s=0.15)
        waiting = asyncio.create_task(register(second, 1, entry, SystemClock(), patience_s=120))
        await first.close()
        assert await waiting > epoch
        await server.close()

    run(scenario())


def test_broker_starts_again_after_losing_its_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(3, data=tmp_path, fsync=False) as cluster:
            await with_topic(cluster, replication_factor=3)
            leader = leader_of(cluster)
            victim = cluster.brokers[leader]
            before = victim.services
            batch = build([Record(0, 1, None, b"kept")])
            written = await before.replicas.append({PARTITION: batch}, acks=-1, timeout_ms=120_000)
            assert written[PARTITION].error_code == 0
            address = victim.address
            store = cluster._store
            assert store is not None
            store.expire(before.store.session_id)
            while not victim.is_running or victim.services is before:
                await asyncio.sleep(0.01)
            assert victim.address == address
            metadata = victim.services.metadata
            assert await metadata.until(
                lambda: (it := metadata.partition(PARTITION)) is not None and set(it.isr) == {0, 1, 2}, 30
            )
            replica = victim.services.replicas.partition(PARTITION)
            assert replica is not None
            assert replica.log.end_offset == 1

    run(scenario())


def test_failed_log_dir_takes_only_its_replicas_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(2, log_dirs=2, data=tmp_path, fsync=False) as cluster:
            await with_topic(cluster, replication_factor=2, partitions=4)
            broker = cluster.brokers[0].services
            hosted = {each for directory in broker.logs.directories for each in directory.logs}
            leads = {each for each in hosted if broker.metadata.partition(each).leader_id == 0}
            # Leaders and log dirs may alternate in step: fail the one that leaves partitions to lead.
            directory, other = sorted(
                broker.logs.directories, key=lambda each: len(leads.intersection(each.logs))
            )
            lost, kept = tuple(directory.logs), tuple(other.logs)
            assert lost
            assert leads.intersection(kept)

            def fail() -> None:
                raise OSError("the disk is broken")

            with pytest.raises(Exception, match="broken"):
                directory.disk.call(fail)
            for number in (0, 1):
                known = cluster.brokers[number].services.metadata
                assert await known.until(
                    lambda it=known: all(it.partition(each).leader_id == 1 for each in lost), 30
                )
            batch = build([Record(0, 1, None, b"value")])
            results = await broker.replicas.append(
                dict.fromkeys((*lost, *kept), batch), acks=1, timeout_ms=1000
            )
            assert {results[each].error_code for each in lost} == {ErrorCode.KAFKA_STORAGE_ERROR}
            led = [each for each in kept if broker.metadata.partition(each).leader_id == 0]  # type: ignore[union-attr]
            assert led
            assert {results[each].error_code for each in led} == {0}

    run(scenario())


def test_broker_without_log_dirs_ends_and_others_lead(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(2, log_dirs=2, data=tmp_path, fsync=False) as cluster:
            await with_topic(cluster, replication_factor=2, partitions=4)
            ruined = cluster.brokers[1]

            def fail() -> None:
                raise OSError("the disk is broken")

            for directory in ruined.services.logs.directories:
                with pytest.raises(Exception, match="broken"):
                    directory.disk.call(fail)
            assert not ruined.is_running
            known = cluster.brokers[0].services.metadata
            assert await known.until(lambda: all(it.leader_id == 0 for it in known.partitions("t")), 120)
            await cluster.start_broker(1)
            assert await known.until(lambda: all(len(it.isr) == 2 for it in known.partitions("t")), 120)

    run(scenario())


def test_cluster_stops_all_brokers_if_one_cannot_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, data=tmp_path / "first", fsync=False) as first:
            port = int(first.brokers[0].address.rpartition(":")[2])
            second = EmbeddedCluster(3, data=tmp_path / "second", port=port - 1, fsync=False)
            with pytest.raises(OSError, match="address already in use"):
                await second.start()
            assert not any(broker.is_running for broker in second.brokers.values())

    run(scenario())


def test_stop_moves_leaders_away_before_the_broker_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(3, data=tmp_path, fsync=False) as cluster:
            await with_topic(cluster, replication_factor=3)
            leader = leader_of(cluster)
            await cluster.stop_broker(leader)
            assert leader_of(cluster) not in (leader, -1)
            with pytest.raises(RuntimeError, match=f"broker {leader} is not running"):
                _ = cluster.brokers[leader].services
            await cluster.stop_broker(leader)
            await cluster.start_broker(leader)
            with pytest.raises(RuntimeError, match="running already"):
                await cluster.start_broker(leader)
            await cluster.kill_broker(leader)
            await until_led_by_another(cluster, leader)

    run(scenario())


def test_broker_that_cannot_start_releases_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, data=tmp_path, fsync=False) as cluster:
            store = EmbeddedStore()

            async def open_session() -> EmbeddedSession:
                return store.session()

            world = BrokerRuntime(
                clock=SystemClock(),
                chance=SystemChance(),
                network=SystemNetwork(),
                disk=SystemDisk(),
                open_session=open_session,
            )
            host, _, port = cluster.brokers[0].address.rpartition(":")
            options = BrokerOptions(
                broker_id=5, log_dirs=(str(tmp_path / "other"),), host=host, port=int(port)
            )
            broker = BrokerServer(options, world)
            with pytest.raises(OSError, match="address already in use"):
                await broker.start()
            assert not broker.is_running
            look = store.session()
            assert await look.children(BrokerRegistration.PARENT) == ()
            await store.close()

    run(scenario())


def test_cluster_refuses_invalid_sizes() -> None:
    with pytest.raises(InvalidBrokers, match="at least one broker"):
        EmbeddedCluster(0)
    with pytest.raises(InvalidBrokers, match="at least one log dir"):
        EmbeddedCluster(1, log_dirs=0)


def test_cluster_removes_its_temporary_folder() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, fsync=False) as cluster:
            folder = cluster._temporary
            assert folder is not None
            assert (folder / "broker-0" / "log-0" / "meta.properties").exists()
            with pytest.raises(InvalidBrokers, match="There is no broker 7"):
                await cluster.stop_broker(7)
        assert not folder.exists()

    run(scenario())


def test_cluster_reserves_ports_until_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = set()

    class Watched(HeldPort):
        def __init__(self, host: str) -> None:
            super().__init__(host)
            held.add(self.number)

        def let_go(self) -> None:
            super().let_go()
            held.remove(self.number)

    async def scenario() -> None:
        async with EmbeddedCluster(2, data=tmp_path, fsync=False) as cluster:
            await cluster.add_broker()
            await cluster.kill_broker(1)
            assert {f"127.0.0.1:{port}" for port in held} == set(cluster.bootstrap.split(","))
            await cluster.start_broker(1)

    monkeypatch.setattr("restow.cluster.embedded.HeldPort", Watched)
    run(scenario())
    assert held == set()


def test_broker_notices_session_lost_during_its_start(tmp_path: Path) -> None:
    """Otherwise it would serve on without being registered."""

    async def scenario() -> None:
        store = EmbeddedStore()
        sessions: list[EmbeddedSession] = []

        async def open_session() -> EmbeddedSession:
            sessions.append(store.session())
            return sessions[-1]

        world = BrokerRuntime(
            clock=SystemClock(),
            chance=SystemChance(),
            network=SystemNetwork(),
            disk=SystemDisk(),
            open_session=open_session,
        )
        broker = BrokerServer(BrokerOptions(broker_id=1, log_dirs=(str(tmp_path / "log"),)), world)
        starting = asyncio.create_task(broker.start())
        look = store.session()
        while not await look.exists(BrokerRegistration.path(1)):
            await asyncio.sleep(0)
        sessions[0].expire()
        with pytest.raises(SessionExpired):
            await starting
        assert not broker.is_running
        await broker.start()
        await broker.stop(hand_over=False)
        await store.close()

    run(scenario())


def test_broker_that_cannot_start_again_logs_the_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, data=tmp_path, fsync=False) as cluster:
            broker = cluster.brokers[0]
            (tmp_path / "broker-0" / "log-0" / "meta.properties").write_text("cluster.id=x\nbroker.id=9\n")
            cluster._store.expire(broker.services.store.session_id)
            assert "belongs to broker 9" in await broker.until_failed()
            assert not broker.is_running

    run(scenario())


def test_metadata_waits_for_the_controller_while_broker_starts(tmp_path: Path) -> None:
    """A client that asks a starting broker gets its response when the broker has metadata."""

    async def scenario() -> None:
        async with EmbeddedCluster(1, data=tmp_path, fsync=False) as cluster:
            await with_topic(cluster, replication_factor=1)
            metadata = cluster.brokers[0].services.metadata
            brokers, metadata.brokers = metadata.brokers, {}
            client = await Client.connect(int(cluster.bootstrap.rpartition(":")[2]))
            request = messages.MetadataRequest
            client.ask(3, 9, 1, request(topics=[request.MetadataRequestTopic(name="t")]))
            await asyncio.sleep(0.1)
            assert client.frames.empty()
            metadata.brokers = brokers
            metadata._wake()
            answer = await client.answer(3, 9)
            assert [each.node_id for each in answer.brokers] == [0]
            assert [each.error_code for each in answer.topics] == [0]
            client.connection.close()
            await client.is_closed.wait()

    run(scenario())
