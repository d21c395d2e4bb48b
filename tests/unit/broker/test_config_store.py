"""Dynamic configs through the store: several brokers follow the same notifications."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.config.changes import check_topic
from restow.cluster.config.configs import BrokerConfigs
from restow.cluster.config.store import ConfigStore
from restow.cluster.config.table import InvalidConfig
from restow.cluster.quotas import ClientQuotas, QuotaStore
from restow.cluster.store import ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import PERSISTENT_PATHS, ConfigChange, EntityConfig
from restow.cluster.tasks import Tasks
from restow.runtime.clock import SystemClock
from tests.unit.broker.conversations import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Follower:
    """One broker's configs, and its recorded callbacks."""

    def __init__(self, broker_id: int, server: EmbeddedStore) -> None:
        self.configs = BrokerConfigs()
        self.tasks = Tasks()
        self.heard: list[str | None] = []
        self.store = server.session()
        self.quotas = ClientQuotas(self.configs, SystemClock())
        self.quota_store = QuotaStore(self.store, self.quotas)
        self.written = ConfigStore(
            broker_id, self.configs, self.store, self.tasks, self.heard.append, self.quota_store
        )

    def retention_ms(self, topic: str) -> int:
        return self.configs.log_config(topic).retention_ms


def set_to(**values: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    named = {name.replace("_", "."): value for name, value in values.items()}
    return lambda current: check_topic({**current, **named})


async def served() -> EmbeddedStore:
    server = EmbeddedStore()
    await ensure_paths(server.session(), PERSISTENT_PATHS)
    return server


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_all_brokers_follow_a_change() -> None:
    async def scenario() -> None:
        server = await served()
        brokers = [Follower(number, server) for number in range(3)]
        for broker in brokers:
            await broker.written.start()
        await brokers[0].written.alter(
            EntityConfig.topic_path("t"), set_to(retention_ms="7"), only_check=False
        )
        await brokers[2].written.alter(EntityConfig.topic_path("t"), set_to(segment_ms="9"), only_check=False)
        await settle()
        for broker in brokers:
            found = broker.configs.log_config("t")
            assert (found.retention_ms, found.segment_ms) == (7, 9)
            assert broker.heard[-1] == "t"
        node = await brokers[0].store.get(EntityConfig.topic_path("t"))
        assert EntityConfig.decode(node.data, "t").values == {"retention.ms": "7", "segment.ms": "9"}
        await server.close()

    run(scenario())


def test_validated_or_invalid_change_is_not_written() -> None:
    async def scenario() -> None:
        server = await served()
        broker = Follower(0, server)
        await broker.written.start()
        await broker.written.alter(EntityConfig.topic_path("t"), set_to(retention_ms="7"), only_check=True)
        with pytest.raises(InvalidConfig):
            await broker.written.alter(
                EntityConfig.topic_path("t"), set_to(retention_ms="soon"), only_check=False
            )
        assert await broker.store.children(EntityConfig.TOPICS) == ()
        assert await broker.store.children(ConfigChange.PARENT) == ()
        await server.close()

    run(scenario())


def test_concurrent_changes_are_all_applied() -> None:
    async def scenario() -> None:
        server = await served()
        brokers = [Follower(number, server) for number in range(3)]
        for broker in brokers:
            await broker.written.start()
        names = ("retention.ms", "segment.ms", "flush.ms")
        await asyncio.gather(
            *(
                broker.written.alter(EntityConfig.topic_path("t"), set_to(**{name: "5"}), only_check=False)
                for broker, name in zip(brokers, names, strict=True)
            )
        )
        await settle()
        found = brokers[0].configs.log_config("t")
        assert (found.retention_ms, found.segment_ms, found.flush_ms) == (5, 5, 5)
        await server.close()

    run(scenario())


def test_later_broker_and_new_topics_read_configs_without_notification() -> None:
    async def scenario() -> None:
        server = await served()
        first = Follower(0, server)
        await first.written.start()
        await first.written.alter(EntityConfig.topic_path("t"), set_to(retention_ms="7"), only_check=False)
        later = Follower(1, server)
        await later.written.start()
        assert later.retention_ms("t") == 7
        await later.store.create(EntityConfig.topic_path("new"), EntityConfig({"retention.ms": "8"}).encode())
        await first.written.learn(["new", "t", "without-any"])
        assert (first.retention_ms("new"), first.retention_ms("t")) == (8, 7)
        first.written.forget("new")
        assert first.retention_ms("new") == first.retention_ms("without-any")
        await server.close()

    run(scenario())


def test_notifications_are_removed_and_a_gap_causes_full_read() -> None:
    async def scenario() -> None:
        server = await served()
        writer, sleeper = Follower(0, server), Follower(1, server)
        await writer.written.start()
        await sleeper.written.start()
        held = sleeper.tasks
        await held.close()  # It no longer acts on notifications.
        for number in range(120):
            path = EntityConfig.topic_path(f"t-{number}")
            await writer.written.alter(path, set_to(retention_ms=str(number)), only_check=False)
        assert len(await writer.store.children(ConfigChange.PARENT)) == 100
        assert sleeper.retention_ms("t-1") != 1
        await sleeper.written._follow()
        assert [sleeper.retention_ms(f"t-{number}") for number in range(120)] == list(range(120))
        await server.close()

    run(scenario())


def test_brokers_have_own_and_common_configs() -> None:
    async def scenario() -> None:
        server = await served()
        brokers = [Follower(number, server) for number in range(2)]
        for broker in brokers:
            await broker.written.start()
        rate = "leader.replication.throttled.rate"
        await brokers[0].written.alter(EntityConfig.broker_path(1), lambda _: {rate: "10"}, only_check=False)
        await brokers[0].written.alter(
            EntityConfig.broker_path(None), lambda _: {"log.retention.ms": "99"}, only_check=False
        )
        await settle()
        assert brokers[1].configs.value(rate) == 10
        assert brokers[0].configs.value(rate) != 10
        assert [broker.retention_ms("t") for broker in brokers] == [99, 99]
        assert brokers[0].heard[-1] is None
        await server.close()

    run(scenario())


@pytest.mark.parametrize("junk", [b"{", b"\xff", b'{"version":9}', b'{"version":2,"entity_path":"users/u"}'])
def test_invalid_notifications_and_configs_are_skipped(junk: bytes) -> None:
    async def scenario() -> None:
        server = await served()
        broker = Follower(0, server)
        await broker.store.create(EntityConfig.topic_path("t"), junk)
        await broker.written.start()
        await broker.store.create(ConfigChange.PREFIX, junk, sequential=True)
        await broker.store.create(f"{ConfigChange.PARENT}/stranger", b"")
        await broker.written.alter(EntityConfig.topic_path("u"), set_to(retention_ms="3"), only_check=False)
        await settle()
        assert broker.retention_ms("u") == 3
        assert broker.retention_ms("t") == BrokerConfigs().log_config("t").retention_ms
        await server.close()

    run(scenario())
