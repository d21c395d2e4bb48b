"""A coordinator for tests, with a virtual clock and a journal in memory."""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from restow.cluster.groups import (
    CommitRequest,
    GroupConfig,
    GroupCoordinator,
    JoinRequest,
    OffsetToCommit,
    SyncRequest,
    partition_of_group,
)
from restow.cluster.groups.journal import JournalRecord
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.clock import HandClock, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from restow.cluster.groups import GroupState, JoinReply, SyncReply
    from restow.cluster.groups.journal import KeyAndValue, TransactionalProducer

PARTITIONS = 3
GROUP = "crew"
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 1)
_GIVE_UP_S = 30


class MemoryJournal:
    """Keeps appended records. `errors` are returned instead, one each; while `held`, appends wait."""

    def __init__(self) -> None:
        self.topic = "__consumer_offsets"
        self.logs: dict[int, list[KeyAndValue]] = defaultdict(list)
        self.transactions: dict[tuple[int, int], tuple[int, bool | None]] = {}
        """By partition and offset: the producer of a record in a transaction, or how one ends."""
        self.batches: list[int] = []
        self.errors: list[ErrorCode | Exception] = []
        self.open = asyncio.Event()
        self.open.set()

    def hold(self) -> None:
        self.open.clear()

    def release(self) -> None:
        self.open.set()

    def end_transaction(self, partition: int, producer_id: int, *, commits: bool) -> None:
        """Append an end marker."""
        self.transactions[partition, len(self.logs[partition])] = producer_id, commits
        self.logs[partition].append((None, None))

    async def append(
        self, partition: int, records: Sequence[KeyAndValue], producer: TransactionalProducer | None = None
    ) -> ErrorCode:
        await self.open.wait()
        if self.errors:
            error = self.errors.pop(0)
            if isinstance(error, Exception):
                raise error
            return error
        if producer is not None:
            offset = len(self.logs[partition])
            for number in range(len(records)):
                self.transactions[partition, offset + number] = producer.producer_id, None
        self.logs[partition].extend(records)
        self.batches.append(len(records))
        return ErrorCode.NONE

    async def read_all(self, partition: int) -> AsyncIterator[JournalRecord]:
        await self.open.wait()
        for offset, (key, value) in enumerate(tuple(self.logs[partition])):
            await asyncio.sleep(0)
            producer_id, commits = self.transactions.get((partition, offset), (None, None))
            yield JournalRecord(offset, key, value, producer_id, commits)


class SomeTopics:
    """Topics that a test makes, lets grow and deletes."""

    def __init__(self, **counts: int) -> None:
        self.version = 0
        self._counts: dict[str, int] = {}
        self._ids: dict[str, UUID] = {}
        self._made = 0
        self.racks: tuple[str, ...] = ()
        """Of the partitions of each topic, in turn."""
        self.ends: dict[TopicPartition, int] = {}
        for name, partitions in counts.items():
            self.make(name, partitions)

    def make(self, name: str, count: int) -> None:
        """Create a topic, or give it more partitions."""
        self.version += 1
        self._counts[name] = count
        if name not in self._ids:
            self._made += 1
            self._ids[name] = UUID(int=self._made)

    def delete(self, name: str) -> None:
        self.version += 1
        del self._counts[name], self._ids[name]

    def names(self) -> tuple[str, ...]:
        return tuple(self._counts)

    def id_of(self, topic: str) -> UUID | None:
        return self._ids.get(topic)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name, known in self._ids.items() if known == topic_id), None)

    def partition_count(self, topic: str) -> int:
        return self._counts.get(topic, 0)

    def racks_of(self, topic: str) -> list[list[str | None]]:
        return [
            [self.racks[number % len(self.racks)]] if self.racks else []
            for number in range(self._counts[topic])
        ]

    def end_of(self, partition: TopicPartition) -> int | None:
        return self.ends.get(partition)


class Workbench:
    """A loaded coordinator with clock and journal, and shortcuts for members."""

    def __init__(self, journal: MemoryJournal | None = None, **config: Any) -> None:
        self.clock = HandClock(1_700_000_000.0)
        self.journal = journal or MemoryJournal()
        self.config = GroupConfig(**{"consumer_assignment_interval_ms": 0} | config)
        self.topics = SomeTopics()
        self._ids = count(1)
        self.tasks: list[asyncio.Task[Any]] = []
        self.coordinator = self.another()

    def another(self) -> GroupCoordinator:
        """Return another coordinator on the same clock and journal, like another broker's."""
        return GroupCoordinator(
            clock=self.clock,
            partition_for=lambda group: partition_of_group(group, PARTITIONS),
            journal=self.journal,
            config=self.config,
            make_id=lambda: str(next(self._ids)),
            topics=self.topics,
        )

    async def __aenter__(self) -> Workbench:
        for partition in range(PARTITIONS):
            await self.coordinator.load(partition)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.journal.release()
        await self.coordinator.close()
        await asyncio.gather(*self.tasks)

    async def begin(self, doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a coroutine and check that it waits."""
        task = asyncio.ensure_future(doing)
        self.tasks.append(task)
        await settle()
        return task

    async def stable(self, *members: str, **changes: Any) -> tuple[list[str], int]:
        """Make a group in which each member's assignment is its name; return ids and generation.

        "@a" is a static member with instance id "a", other names are dynamic ones.
        """
        joins = []
        for name in members:
            instance_id = name[1:] if name.startswith("@") else None
            request = joining(client_id=name, instance_id=instance_id, **changes)
            joins.append(await self.begin(self.coordinator.join(GROUP, request)))
        await self.clock.advance(2 * self.config.initial_rebalance_delay_ms / 1000)
        replies: list[JoinReply] = [await join for join in joins]
        ids = [reply.member_id for reply in replies]
        shares = tuple((member_id, name.encode()) for member_id, name in zip(ids, members, strict=True))
        leader = replies[0].leader
        (generation,) = {reply.generation for reply in replies}
        synced = await asyncio.gather(
            *(
                self.sync(member_id, generation, assignments=shares if member_id == leader else ())
                for member_id in ids
            )
        )
        assert [reply.assignment for reply in synced] == [share for _, share in shares]
        return ids, generation

    async def join(self, member: str = "", **changes: Any) -> JoinReply:
        return await self.coordinator.join(GROUP, joining(member, **changes))

    async def sync(self, member: str, generation: int, **changes: Any) -> SyncReply:
        request = SyncRequest(member_id=member, generation=generation, **changes)
        return await self.coordinator.sync(GROUP, request)

    async def heartbeat(self, member: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        return await self.coordinator.heartbeat(GROUP, generation, member, instance_id)

    async def state(self) -> GroupState | None:
        return (await self.coordinator.describe(GROUP)).state


def joining(member: str = "", **changes: Any) -> JoinRequest:
    """Return a consumer's join request with the given changes."""
    request = JoinRequest(
        member_id=member,
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(("range", subscription("orders")),),
    )
    return replace(request, **changes)


def subscription(*topics: str) -> bytes:
    """Return a consumer's subscription: version 0, topics, no user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test on its own loop; one that waits for ever fails."""
    asyncio.run(asyncio.wait_for(test(), _GIVE_UP_S))


async def commit(
    bench: Workbench, offset: int = 5, partition: TopicPartition = ORDERS, **who: Any
) -> ErrorCode:
    request = CommitRequest(offsets={partition: OffsetToCommit(offset, 2, "note")}, **who)
    return (await bench.coordinator.commit_offsets(GROUP, request))[partition]


async def fetched(bench: Workbench, partition: TopicPartition = ORDERS) -> int | None:
    error, offsets, _ = await bench.coordinator.fetch_offsets(GROUP, [partition])
    assert error is ErrorCode.NONE
    found = offsets[partition]
    return None if found is None else found.offset


async def restarted(bench: Workbench) -> None:
    """Unload and load all partitions."""
    for partition in range(PARTITIONS):
        bench.coordinator.unload(partition)
    for partition in range(PARTITIONS):
        await bench.coordinator.load(partition)
