"""Our controller beside Apache Kafka's 3.9 in ZooKeeper mode: the same requests and failures give the same
answers and trees.

`docs/controller.md` lists the differences.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harness.apache import apache_kafka
from harness.zookeeper import zookeeper
from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.store.zookeeper import ZooKeeperStore
from tests.apache.two_sides import BROKERS, Conversation, Ours, Theirs
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

SETTINGS = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
    "replica.lag.time.max.ms": "30000",
    "zookeeper.session.timeout.ms": "40000",
}
"""A broker that stalls for some seconds must keep its session and its ISRs: epochs are compared."""


class Pair(NamedTuple):
    """Both sides, and the loop of ours."""

    runner: asyncio.Runner
    ours: Ours
    theirs: Theirs

    def both(self, story: Callable[[Conversation], Awaitable[Any]]) -> Any:
        """Run the story on both sides, check that the results are equal, and return them."""

        async def tell() -> tuple[Any, Any]:
            return await asyncio.gather(story(Conversation(self.ours)), story(Conversation(self.theirs)))

        ours, theirs = self.runner.run(tell())
        assert ours == theirs
        return ours


@pytest.fixture(scope="module")
def pair(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Start three brokers of each kind."""
    folder = tmp_path_factory.mktemp("two-sides")
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(folder / "zookeeper", fsync=False))
            kafka = stack.enter_context(
                apache_kafka(folder / "kafka", nodes=BROKERS, zookeeper=server.address, settings=SETTINGS)
            )
        runner = stack.enter_context(asyncio.Runner())
        until_the_end = AsyncExitStack()

        async def begin() -> Pair:
            cluster = EmbeddedCluster(BROKERS, data=folder / "ours", properties=SETTINGS, fsync=False)
            await until_the_end.enter_async_context(cluster)
            store = await ZooKeeperStore.connect(server.address)
            until_the_end.push_async_callback(store.close)
            return Pair(runner, Ours(cluster), Theirs(kafka, store))

        try:
            yield runner.run(begin())
        finally:
            runner.run(until_the_end.aclose())


REFUSED: dict[str, dict[str, Any]] = {
    "no name": {"name": "", "partitions": 1, "replication_factor": 1},
    "one dot": {"name": ".", "partitions": 1, "replication_factor": 1},
    "two dots": {"name": "..", "partitions": 1, "replication_factor": 1},
    "a blank": {"name": "a b", "partitions": 1, "replication_factor": 1},
    "an umlaut": {"name": "ä", "partitions": 1, "replication_factor": 1},
    "250 letters": {"name": "x" * 250, "partitions": 1, "replication_factor": 1},
    "looks like another": {"name": "is_there", "partitions": 1, "replication_factor": 1},
    "there already": {"name": "is.there", "partitions": 1, "replication_factor": 1},
    "there already, only a check": {
        "name": "is.there",
        "partitions": 1,
        "replication_factor": 1,
        "only_check": True,
    },
    "twice in the request": {"name": "twice", "partitions": 1, "replication_factor": 1, "times": 2},
    "no partitions": {"name": "t1", "partitions": 0, "replication_factor": 1},
    "fewer than none": {"name": "t2", "partitions": -2, "replication_factor": 1},
    "no replicas": {"name": "t3", "partitions": 1, "replication_factor": 0},
    "fewer replicas than none": {"name": "t4", "partitions": 1, "replication_factor": -2},
    "more replicas than brokers": {"name": "t5", "partitions": 1, "replication_factor": 4},
    "both wrong": {"name": "t6", "partitions": 0, "replication_factor": 0},
    "counted and by hand": {"name": "t7", "partitions": 1, "replication_factor": 1, "by_hand": {0: (0,)}},
    "counted partitions and by hand": {"name": "t8", "partitions": 1, "by_hand": {0: (0,)}},
    "a gap": {"name": "t9", "by_hand": {0: (0,), 2: (1,)}},
    "not from 0": {"name": "t10", "by_hand": {1: (0,)}},
    "a broker twice": {"name": "t11", "by_hand": {0: (0, 0)}},
    "different counts": {"name": "t14", "by_hand": {0: (0, 1), 1: (1,)}},
    "an unknown config": {
        "name": "t16",
        "partitions": 1,
        "replication_factor": 1,
        "configs": {"no.such": "1"},
    },
    "not a number": {
        "name": "t17",
        "partitions": 1,
        "replication_factor": 1,
        "configs": {"retention.ms": "long"},
    },
    "out of range": {
        "name": "t18",
        "partitions": 1,
        "replication_factor": 1,
        "configs": {"retention.ms": "-2"},
    },
    "no value": {"name": "t19", "partitions": 1, "replication_factor": 1, "configs": {"retention.ms": None}},
    "not a choice": {
        "name": "t20",
        "partitions": 1,
        "replication_factor": 1,
        "configs": {"cleanup.policy": "burn"},
    },
    "wrong, only a check": {"name": "t21", "partitions": 1, "replication_factor": 9, "only_check": True},
    "wrong counts and configs": {
        "name": "t22",
        "partitions": 0,
        "replication_factor": 1,
        "configs": {"no.such": "1"},
    },
}


def test_controller_refuses_the_same_topics_as_kafka(pair: Pair) -> None:
    async def story(side: Conversation) -> dict[str, Any]:
        before = await side.topics()
        await side.create("is.there", 1, 1)
        answers = {why: (await side.create(**asked))[0] for why, asked in REFUSED.items()}
        answers["what there is"] = tuple(name for name in await side.topics() if name not in before)
        await side.delete("is.there")
        await side.until_deleted("is.there")
        return answers

    answers = pair.both(story)
    assert all(answers[why] for why in REFUSED)


def test_controller_creates_expands_and_deletes_topics_like_kafka(pair: Pair) -> None:
    async def story(side: Conversation) -> list[Any]:
        configs = {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
        told: list[Any] = [
            await side.create("checked", 3, 2, only_check=True),
            await side.topic("checked"),
            await side.create("counted", 4, 3, configs=configs),
            await side.config("counted"),
            [len(replicas) for replicas in (await side.topic("counted")).values()],
            await side.create("defaults"),
            await side.create("hand", by_hand={0: (2, 1), 1: (0, 2)}),
            await side.topic("hand"),
            await side.config("hand"),
            [await side.state("hand", each) for each in (0, 1)],
            await side.grow("hand", 2),
            await side.grow("hand", 1),
            await side.grow("hand", 0),
            await side.grow("absent", 3),
            await side.grow("hand", 3, times=2),
            await side.grow("hand", 4, by_hand=[(0, 1)]),
            await side.grow("hand", 3, by_hand=[(0,)]),
            await side.grow("hand", 3, by_hand=[(0, 0)]),
            await side.grow("hand", 3, by_hand=[(0, 8)]),
            await side.grow("hand", 3, by_hand=[()]),
            await side.grow("hand", 3, by_hand=[(1, 0), (0, 1)]),
            await side.grow("hand", 3, only_check=True),
            await side.topic("hand"),
            await side.grow("hand", 3, by_hand=[(1, 0)]),
            await side.grow("hand", 6),
            await side.topic("hand"),
            [await side.until((first, {first, second}), "hand", 2) for first, second in [(1, 0)]],
            await side.delete("hand", "absent", "counted"),
        ]
        for name in ("hand", "counted"):
            await side.until_deleted(name)
        told += [await side.delete("hand"), await side.delete("defaults")]
        await side.until_deleted("defaults")
        return told

    pair.both(story)


@pytest.mark.full
def test_controller_answers_requests_without_a_timeout_like_kafka(pair: Pair) -> None:
    """Apache Kafka sometimes never deletes the topic, which had just got partitions."""

    async def story(side: Conversation) -> list[Any]:
        told = [(await side.create("hurry", by_hand={0: (0, 1)}, timeout_ms=0))[0]]
        await side.until((0, {0, 1}), "hurry")
        told.append(await side.grow("hurry", 2, by_hand=[(1, 2)], timeout_ms=0))
        await side.until((1, {1, 2}), "hurry", 1)
        told += [await side.grow("hurry", 9, only_check=True, timeout_ms=0), await side.topic("hurry")]
        told.append(await side.delete("hurry", timeout_ms=0))
        await side.until_deleted("hurry")
        return told

    pair.both(story)


def test_controller_elects_like_kafka_when_a_broker_stops_and_comes_back(pair: Pair) -> None:
    async def story(side: Conversation) -> list[Any]:
        assert (await side.create("l", by_hand={0: (0, 1), 1: (1, 0), 2: (2, 1)}))[0] == 0
        assert (await side.create("alone", by_hand={0: (1,)}))[0] == 0
        told: list[Any] = [
            await side.elect(0, {"l": [0, 9], "absent": [0]}),
            await side.elect(1, {"l": [0]}),
            await side.elect(0, None),
            await side.elect(1, None),
        ]
        await side.side.stop(1)
        told += [
            await side.until((0, {0}), "l", 0),
            await side.until((0, {0}), "l", 1),
            await side.until((2, {2}), "l", 2),
            await side.until((-1, {1}), "alone"),
            await side.elect(0, {"l": [0, 1, 2], "alone": [0]}),
            await side.elect(1, {"l": [1], "alone": [0]}),
            (await side.create("m", 1, 3))[0],
            (await side.create("m", 2, 2))[0],
            await side.delete("m"),
        ]
        await side.until_deleted("m")
        told.append(await side.delete("l"))
        await side.create("n", by_hand={0: (0, 2)})
        told += [await side.grow("l", 5), await side.elect(0, {"l": [0]}), await side.topic("n")]
        await side.side.start(1)
        await side.until_deleted("l")
        told.append(await side.until((1, {1}), "alone"))
        told.append(await side.delete("n", "alone"))
        for name in ("n", "alone"):
            await side.until_deleted(name)
        return told

    pair.both(story)


def test_controller_elects_preferred_leaders_like_kafka_after_a_return(pair: Pair) -> None:
    async def story(side: Conversation) -> list[Any]:
        assert (await side.create("p", by_hand={0: (2, 0), 1: (2, 1), 2: (0, 2)}))[0] == 0
        await side.side.stop(2)
        told = [
            await side.until((0, {0}), "p", 0),
            await side.until((1, {1}), "p", 1),
            await side.until((0, {0}), "p", 2),
        ]
        await side.side.start(2)
        told += [
            await side.until((0, {0, 2}), "p", 0),
            await side.until((1, {1, 2}), "p", 1),
            await side.until((0, {0, 2}), "p", 2),
            await side.elect(0, {"p": [0, 2]}),
            await side.until((2, {0, 2}), "p", 0),
            await side.elect(0, None),
            await side.until((2, {1, 2}), "p", 1),
            await side.delete("p"),
        ]
        await side.until_deleted("p")
        return told

    pair.both(story)
