"""Logs left behind by reassignments and deletions while a broker was down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from restow.cluster.broker import life
from restow.cluster.broker.creation import RequestedTopic
from restow.cluster.broker.registration import register
from restow.cluster.broker.strays import remove_strays
from restow.cluster.controller.reassignment.rules import ReassignmentTarget
from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.log import LogManager, MetaProperties
from restow.cluster.log.config import LogConfig
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import TopicZNode
from restow.model import ReplicaAssignment, TopicPartition
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.wire.records import Record, build
from tests.unit.broker.conversations import run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ID, OTHER_ID = "A" * 22, "B" * 22
PARTITION = TopicPartition("t", 0)
BATCH = build([Record(0, 1, None, b"v")])


def logs_in(path: Path) -> LogManager:
    logs = LogManager(
        SystemDisk(),
        [str(path / "d0"), str(path / "d1")],
        MetaProperties("c", 1),
        config_of=lambda _: LogConfig(),
        now_ms=lambda: 0,
        on_directory_failure=lambda path, lost: None,
    )
    logs.start()
    return logs


def test_remove_strays_removes_only_unassigned_logs(tmp_path: Path) -> None:
    """One of them belongs to a topic that was created again while the broker was down (KAFKA-14616)."""

    async def scenario() -> None:
        store = EmbeddedStore(tmp_path / "store.sqlite", fsync=False, clock=SystemClock())
        session = store.session()
        kept = {0: ReplicaAssignment((2, 1), (1,)), 1: ReplicaAssignment((1,)), 2: ReplicaAssignment((2,))}
        logs = logs_in(tmp_path)
        for path, data in (
            ("/brokers", b""),
            ("/brokers/topics", b""),
            (TopicZNode.path("kept"), TopicZNode(topic_id=ID, partitions=kept).encode()),
            (TopicZNode.path("again"), TopicZNode(topic_id=OTHER_ID, partitions=kept).encode()),
            (TopicZNode.path("unreadable"), b"{"),
        ):
            await session.create(path, data)
        held = [TopicPartition("kept", number) for number in range(4)]
        held += [TopicPartition(name, 0) for name in ("again", "gone", "unreadable")]
        for partition in held:
            logs.get_or_create(partition, topic_id=ID).append_as_leader(BATCH, 0, 0)
        logs.begin_move(TopicPartition("gone", 0), logs.directories[0])
        strays = await remove_strays(session, logs, 1)
        assert sorted(map(str, strays)) == ["again-0", "gone-0", "kept-2", "kept-3"]
        assert sorted(map(str, logs.partitions)) == ["kept-0", "kept-1", "unreadable-0"]
        assert logs.futures.partitions == ()
        renamed = [each.name for each in tmp_path.glob("d*/*-stray")]
        assert len(renamed) == 5
        logs.release()
        logs = logs_in(tmp_path)
        for _ in logs.tend():
            pass
        left = sorted(each.name for each in tmp_path.glob("d*/*") if each.is_dir())
        assert left == ["kept-0", "kept-1", "unreadable-0"]
        logs.release()
        await session.close()
        await store.close()

    run(scenario())


def test_replica_reassigned_while_its_broker_was_down_is_removed(tmp_path: Path) -> None:
    """The broker got no StopReplica (KAFKA-13972)."""

    async def scenario() -> None:
        async with EmbeddedCluster(3, data=tmp_path, fsync=False) as cluster:
            leader, follower, spare = await written_to(cluster)
            folder = tmp_path / f"broker-{follower}" / "log-0" / str(PARTITION)
            assert folder.is_dir()
            await cluster.kill_broker(follower)
            await move(cluster, (leader, spare))
            assert folder.is_dir()
            await cluster.start_broker(follower)
            assert not folder.exists()
            assert cluster.brokers[follower].services.logs.get(PARTITION) is None
            assert cluster.brokers[spare].services.logs.get(PARTITION) is not None

    run(scenario())


def test_replica_reassigned_just_before_registration_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the broker has looked for strays, and cannot get requests yet."""

    async def scenario() -> None:
        async with EmbeddedCluster(3, data=tmp_path, fsync=False) as cluster:
            leader, follower, spare = await written_to(cluster)
            await cluster.kill_broker(follower)

            async def moved_first(*arguments: Any, **options: Any) -> int:
                await move(cluster, (leader, spare))
                return await register(*arguments, **options)

            monkeypatch.setattr(life, "register", moved_first)
            await cluster.start_broker(follower)
            while cluster.brokers[follower].services.logs.get(PARTITION) is not None:
                await asyncio.sleep(0.02)
            assert cluster.brokers[spare].services.logs.get(PARTITION) is not None

    run(scenario())


async def written_to(cluster: EmbeddedCluster) -> tuple[int, int, int]:
    """Create a topic with a record; return its leader, its follower and the third broker."""
    await create(cluster)
    known = cluster.brokers[await controller_of(cluster)].services.metadata.partition(PARTITION)
    assert known is not None
    leader, follower = known.replicas
    (spare,) = {0, 1, 2} - {leader, follower}
    written = await cluster.brokers[leader].services.replicas.append({PARTITION: BATCH}, -1, 5000)
    assert written[PARTITION].error_code == 0
    return leader, follower, spare


async def move(cluster: EmbeddedCluster, replicas: tuple[int, ...]) -> None:
    """Reassign the partition and wait until it is done."""
    controller = cluster.brokers[await controller_of(cluster)].services.controller
    assert await controller.alter_reassignments({PARTITION: ReassignmentTarget(replicas)}) == {
        PARTITION: None
    }
    while await controller.list_reassignments(None):
        await asyncio.sleep(0.02)


async def create(cluster: EmbeddedCluster) -> None:
    creation = cluster.brokers[0].services.creation
    await creation.create(await creation.plan(RequestedTopic(name="t", partitions=1, replication_factor=2)))
    for broker in cluster.brokers.values():
        metadata = broker.services.metadata
        assert await metadata.until(lambda it=metadata: it.partition_count("t") == 1, 120)


async def controller_of(cluster: EmbeddedCluster) -> int:
    while True:
        for number, broker in cluster.brokers.items():
            if broker.is_running and broker.services.controller.is_active:
                return number
        await asyncio.sleep(0.02)
