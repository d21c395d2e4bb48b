"""Creating, expanding and deleting topics by their znodes."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import (
    ControllerError,
    create_partitions,
    create_topic,
    delete_topic,
    random_topic_id,
)
from restow.cluster.store import ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import PERSISTENT_PATHS, DeleteTopic, EntityConfig, TopicZNode
from restow.model import ReplicaAssignment
from restow.runtime.chance import SeededChance
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from restow.cluster.store import Store

ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def on_a_store(test: Callable[[Store], Coroutine[object, object, None]]) -> None:
    async def run() -> None:
        server = EmbeddedStore()
        store = server.session()
        await ensure_paths(store, PERSISTENT_PATHS)
        await test(store)
        await server.close()

    asyncio.run(run())


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(ControllerError) as refusal:
        yield
    assert refusal.value.code is code


async def read(store: Store, name: str) -> TopicZNode:
    return TopicZNode.decode((await store.get(TopicZNode.path(name))).data, TopicZNode.path(name))


def test_create_topic_writes_topic_and_config_together() -> None:
    async def test(store: Store) -> None:
        await create_topic(store, "t", {0: (1, 2), 1: (2, 1)}, {"retention.ms": "5"}, ID)
        topic = await read(store, "t")
        assert topic.topic_id == ID
        assert topic.partitions == {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 1))}
        config = await store.get(EntityConfig.topic_path("t"))
        assert config.data == b'{"version":1,"config":{"retention.ms":"5"}}'
        with refused(ErrorCode.TOPIC_ALREADY_EXISTS):
            await create_topic(store, "t", {0: (1,)}, {"retention.ms": "6"}, ID)
        assert await store.get(EntityConfig.topic_path("t")) == config

    on_a_store(test)


def test_create_topic_replaces_leftover_config() -> None:
    async def test(store: Store) -> None:
        await store.create(EntityConfig.topic_path("t"), b"left behind")
        await create_topic(store, "t", {0: (1,)}, {}, ID)
        assert (await store.get(EntityConfig.topic_path("t"))).data == b'{"version":1,"config":{}}'

    on_a_store(test)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "x" * 250])
def test_create_topic_refuses_invalid_names(name: str) -> None:
    async def test(store: Store) -> None:
        with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
            await create_topic(store, name, {0: (1,)}, {}, ID)

    on_a_store(test)


@pytest.mark.parametrize(
    ("assignment", "error"),
    [
        ({}, ErrorCode.INVALID_PARTITIONS),
        ({1: (1,)}, ErrorCode.INVALID_PARTITIONS),
        ({0: (1,), 2: (1,)}, ErrorCode.INVALID_PARTITIONS),
        ({0: ()}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (1, 1)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (-1,)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (1, 2), 1: (1,)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_create_topic_refuses_invalid_assignment(
    assignment: dict[int, tuple[int, ...]], error: ErrorCode
) -> None:
    async def test(store: Store) -> None:
        with refused(error):
            await create_topic(store, "t", assignment, {}, ID)
        assert await store.children(TopicZNode.PARENT) == await store.children(EntityConfig.TOPICS) == ()

    on_a_store(test)


def test_expand_topic_adds_partitions_at_the_end_only() -> None:
    async def test(store: Store) -> None:
        with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            await create_partitions(store, "t", {1: (1,)})
        await create_topic(store, "t", {0: (1, 2)}, {}, ID)
        for added, error in (
            ({0: (1, 2)}, ErrorCode.INVALID_PARTITIONS),
            ({2: (1, 2)}, ErrorCode.INVALID_PARTITIONS),
            ({}, ErrorCode.INVALID_PARTITIONS),
            ({1: (1,)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ):
            with refused(error):
                await create_partitions(store, "t", added)
        both = [create_partitions(store, "t", {1: replicas}) for replicas in ((2, 1), (1, 2))]
        answers = await asyncio.gather(*both, return_exceptions=True)
        assert {getattr(answer, "code", None) for answer in answers} == {ErrorCode.INVALID_PARTITIONS, None}
        topic = await read(store, "t")
        assert (topic.topic_id, list(topic.partitions)) == (ID, [0, 1])

    on_a_store(test)


def test_expand_topic_refuses_reassigned_or_deleted_topic() -> None:
    async def test(store: Store) -> None:
        await create_topic(store, "leaving", {0: (1,)}, {}, ID)
        await delete_topic(store, "leaving")
        with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
            await create_partitions(store, "leaving", {1: (1,)})
        moving = TopicZNode(topic_id=ID, partitions={0: ReplicaAssignment((1, 2), adding=(2,))})
        await store.create(TopicZNode.path("moving"), moving.encode())
        with refused(ErrorCode.REASSIGNMENT_IN_PROGRESS):
            await create_partitions(store, "moving", {1: (1, 2)})

    on_a_store(test)


def test_delete_topic_may_be_repeated() -> None:
    async def test(store: Store) -> None:
        with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            await delete_topic(store, "t")
        await create_topic(store, "t", {0: (1,)}, {}, ID)
        await delete_topic(store, "t")
        await delete_topic(store, "t")
        assert await store.children(DeleteTopic.PARENT) == ("t",)

    on_a_store(test)


def test_random_topic_ids_are_distinct_and_do_not_start_with_a_dash() -> None:
    chance = SeededChance(1)
    ids = {random_topic_id(chance) for _ in range(1000)}
    assert len(ids) == 1000
    assert not any(each.startswith("-") or len(each) != 22 for each in ids)
