"""Apache Kafka 3.9 brokers and one of ours in one cluster, under a controller of either kind.

Where a cluster of Apache's brokers alone gets the same requests, the whole tree in ZooKeeper is compared at
the end (`same_tree.py`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.store.znodes import IsrChangeNotification
from restow.wire.messages import AlterClientQuotasRequest, IncrementalAlterConfigsRequest
from tests.apache.mixed import APACHE, OURS, Kind, MixedSide, apache_cluster, mixed_cluster
from tests.apache.mixed_data import Load, read, slow_moves, write
from tests.apache.same_tree import controller_epoch, settled_tree
from tests.apache.test_reassign_like_kafka import Ask, Mover
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.apache
SETTINGS = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": "40000",
}
KILLS = SETTINGS | {"zookeeper.session.timeout.ms": "8000"}
"""Where brokers are killed, their sessions have to end."""
BY_BATCH = KILLS | {"replica.fetch.max.bytes": "1000"}
"""A follower gets one batch at a time, so that a throttle can hold a move back for minutes."""
PLACES = {0: (0, 1), 1: (1, 2), 2: (2, 0)}
MOVES = (Ask(0, (2, 0)), Ask(1, (0, 2)), Ask(2, (1, 0)))
RECORDS = 300
_TOPIC, _BROKERS = 2, 4
_SET, _REMOVE = 0, 1
EITHER = pytest.mark.parametrize("first", Kind, ids=lambda kind: kind.value)


def run(
    folder: Path, first: Kind, settings: dict[str, str], story: Callable[[MixedSide], Awaitable[Any]]
) -> None:
    async def tell() -> None:
        async with mixed_cluster(folder, first, settings) as side:
            await story(side)

    asyncio.run(tell())


def run_beside_apache(
    folder: Path,
    first: Kind,
    settings: dict[str, str],
    story: Callable[[MixedSide], Awaitable[Any]],
    *,
    after_kills: bool,
) -> None:
    """Run the story on a mixed cluster, and on one of Apache's brokers alone. Compare their trees."""

    async def tell_to(side: MixedSide) -> dict[str, Any]:
        since = await controller_epoch(side.store)
        await story(side)
        await settle(Mover(side))
        tree = await settled_tree(side.store, since=since, after_kills=after_kills)
        assert await asyncio.to_thread(read, side.bootstrap, "t", RECORDS) == list(range(RECORDS))
        return tree

    async def tell() -> None:
        async with mixed_cluster(folder / "mixed", first, settings) as side:
            controller = await side.controller()
            mixed = await tell_to(side)
        async with apache_cluster(folder / "apache alone", settings) as side:
            await side.make_controller(controller)
            assert mixed == await tell_to(side)

    asyncio.run(tell())


async def settle(mover: Mover) -> None:
    """Elect the preferred leaders, once all replicas are in sync."""
    await mover.until_moved("t", list(PLACES))
    for number, (replicas, _, _) in (await mover.node("t")).items():
        await mover.until_isr(set(replicas), "t", number)
    await mover.elect(0, None)
    for number, (replicas, _, _) in (await mover.node("t")).items():
        await mover.until((replicas[0], set(replicas)), "t", number)


@pytest.mark.parametrize("first", often(Kind, Kind.OURS), ids=lambda kind: kind.value)
def test_topics_of_a_mixed_cluster_leave_the_tree_of_an_apache_cluster(
    jars: Path, tmp_path: Path, first: Kind
) -> None:
    async def story(side: MixedSide) -> None:
        mover = Mover(side)
        configs = {"retention.ms": "123456789", "cleanup.policy": "delete"}
        assert (await mover.create("t", by_hand=PLACES, configs=configs))[0] == 0
        assert (await mover.create("gone", by_hand=PLACES))[0] == 0
        await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS // 2))
        await change_configs(mover)
        for ask in MOVES:
            assert await mover.alter("t", ask) == 0
        await mover.until_moved("t", list(PLACES))
        assert await mover.node("t") == {ask.partition: (ask.target, (), ()) for ask in MOVES}
        for ask in MOVES:
            assert ask.target is not None
            _, isr, _, _ = await mover.state("t", ask.partition)
            assert isr == set(ask.target)
        await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS // 2, RECORDS))
        assert await mover.delete("gone") == [("gone", 0)]
        await mover.until_deleted("gone")
        assert (await side.store.get(IsrChangeNotification.PARENT)).stat.cversion == 0, (
            "a leader wrote an ISR"
        )

    run_beside_apache(tmp_path, first, SETTINGS, story, after_kills=False)


async def change_configs(mover: Mover) -> None:
    """Change configs of the topic and of all brokers, and quotas."""
    make = IncrementalAlterConfigsRequest.AlterConfigsResource
    for kind, resource, config, operation, value in (
        (_TOPIC, "t", "flush.ms", _SET, "7000"),
        (_TOPIC, "t", "cleanup.policy", _REMOVE, None),
        (_BROKERS, "", "log.retention.ms", _SET, "987654321"),
    ):
        changed = make.AlterableConfig(name=config, config_operation=operation, value=value)
        wanted = make(resource_type=kind, resource_name=resource, configs=[changed])
        body = IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False)
        answer = await mover.exchange(44, 1, body)
        assert [each.error_code for each in answer.responses] == [0]
    entry = AlterClientQuotasRequest.EntryData
    for user, name, rate in (("alice", "producer_byte_rate", 1e6), (None, "consumer_byte_rate", 2e6)):
        quota = entry(
            entity=[entry.EntityData(entity_type="user", entity_name=user)],
            ops=[entry.OpData(key=name, value=rate, remove=False)],
        )
        body = AlterClientQuotasRequest(entries=[quota], validate_only=False)
        answer = await mover.exchange(49, 1, body)
        assert [each.error_code for each in answer.entries] == [0]


@pytest.mark.full
@EITHER
def test_brokers_of_both_kinds_hand_over_when_they_stop(jars: Path, tmp_path: Path, first: Kind) -> None:
    async def story(side: MixedSide) -> None:
        mover = Mover(side)
        assert (await mover.create("t", by_hand={0: (0, 1, 2), 1: (1, 2, 0), 2: (2, 0, 1)}))[0] == 0
        written = 0
        for broker in (*APACHE, OURS):
            await side.stop(broker)
            others = {0, 1, 2} - {broker}
            for number in range(3):
                following = next(each for each in ((number + i) % 3 for i in range(3)) if each != broker)
                await mover.until((following, others), "t", number)
            await asyncio.to_thread(write, side.bootstrap, "t", range(written, written + RECORDS))
            written += RECORDS
            await side.start(broker)
            for number in range(3):
                await mover.until_isr({0, 1, 2}, "t", number)
            await mover.elect(0, None)
            for number in range(3):
                await mover.until((number, {0, 1, 2}), "t", number)
        assert await asyncio.to_thread(read, side.bootstrap, "t", written) == list(range(written))

    run(tmp_path, first, SETTINGS, story)


@pytest.mark.full
@EITHER
def test_nothing_acknowledged_is_lost_when_brokers_are_killed(
    jars: Path, tmp_path: Path, first: Kind
) -> None:
    async def story(side: MixedSide) -> None:
        mover = Mover(side)
        places = {0: (0, 1, 2), 1: (1, 2, 0), 2: (2, 0, 1)}
        configs = {"min.insync.replicas": "2"}
        assert (await mover.create("t", by_hand=places, configs=configs))[0] == 0
        with Load(side.bootstrap, "t", len(places)) as load:
            for broker in (OURS, *APACHE, OURS):
                await load.until_more()
                await side.kill(broker)
                for number in places:
                    await mover.until_isr({0, 1, 2} - {broker}, "t", number)
                await load.until_more()
                await side.start(broker)
                for number in places:
                    await mover.until_isr({0, 1, 2}, "t", number)
        acknowledged = load.acknowledged
        found = await asyncio.to_thread(read, side.bootstrap, "t", load.sent)
        assert set(acknowledged) <= set(found)
        assert len(set(found)) == len(found)

    run(tmp_path, first, KILLS, story)


@pytest.mark.full
def test_apaches_controller_ends_the_moves_of_ours(jars: Path, tmp_path: Path) -> None:
    async def story(side: MixedSide) -> None:
        mover = Mover(side)
        assert (await mover.create("t", by_hand=PLACES))[0] == 0
        async with slow_moves(side, mover, "t", MOVES, RECORDS):
            await side.kill(OURS)
            await side.until_replaced(OURS)
            assert any(added for _, added, _ in await mover.some("t", list(PLACES)))
            await side.start(OURS)
        await mover.until_moved("t", list(PLACES))
        assert await mover.node("t") == {ask.partition: (ask.target, (), ()) for ask in MOVES}

    run_beside_apache(tmp_path, Kind.OURS, BY_BATCH, story, after_kills=True)


@pytest.mark.full
def test_our_controller_ends_the_moves_of_apaches(jars: Path, tmp_path: Path) -> None:
    """Only one Apache broker runs when it is killed, so that ours is elected."""

    async def story(side: MixedSide) -> None:
        mover = Mover(side)
        controller = await side.controller()
        other = 1 - controller
        await side.stop(other)
        places = {0: (controller,), 1: (OURS,), 2: (controller,)}
        moves = (Ask(0, (OURS, controller)), Ask(1, (controller, OURS)), Ask(2, (OURS,)))
        assert (await mover.create("t", by_hand=places))[0] == 0
        async with slow_moves(side, mover, "t", moves, RECORDS, known=2):
            await side.kill(controller)
            await side.until_replaced(controller)
            assert any(added for _, added, _ in await mover.some("t", list(PLACES)))
            await side.start(controller, known=2)
        await mover.until_moved("t", list(PLACES))
        assert await mover.node("t") == {ask.partition: (ask.target, (), ()) for ask in moves}
        await side.start(other)
        assert await side.controller() == OURS

    run_beside_apache(tmp_path, Kind.APACHE, BY_BATCH, story, after_kills=True)
