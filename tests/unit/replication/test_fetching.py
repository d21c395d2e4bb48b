"""Waiting fetches, fetch sessions, and the cost of idle ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.replication import FetchAnswer, FetchPartition, FetchSpec
from restow.cluster.replication.fetcher import Fetcher
from restow.cluster.replication.partition import HostedPartition
from restow.cluster.replication.sessions import FetchSessions, Session
from restow.cluster.replication.throttling import Throttles
from restow.cluster.replication.values import ReplicationConfig
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import Fetched
from tests.clock import HandClock, settle
from tests.unit.replication.replicas import T0, Cluster, batch, run

if TYPE_CHECKING:
    from pathlib import Path

T1 = TopicPartition("t", 1)
ALL = 1 << 20


def begin(*wanted: TopicPartition, **options: int) -> FetchSpec:
    return FetchSpec(partitions={each: FetchPartition(0, ALL) for each in wanted}, session_epoch=0, **options)


def go_on(answer: FetchAnswer, epoch: int, changed: dict[TopicPartition, int] | None = None) -> FetchSpec:
    targets = {each: FetchPartition(offset, ALL) for each, offset in (changed or {}).items()}
    return FetchSpec(partitions=targets, session_id=answer.session_id, session_epoch=epoch)


async def two_partitions(path: Path) -> Cluster:
    cluster = Cluster(path, 1)
    for key in (T0, T1):
        cluster.elect(1, is_new=True, topic_partition=key)
    return cluster


def test_fetch_waits_for_min_bytes_or_max_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        size = len(batch("a"))
        task = asyncio.create_task(cluster.consume(1, 0, max_wait_ms=1000, min_bytes=2 * size))
        await cluster.produce(1, "a")
        await settle()
        assert not task.done()
        await cluster.produce(1, "b")
        await settle()
        assert task.done()
        assert (await task).records == cluster.bytes_at(1)
        task = asyncio.create_task(cluster.consume(1, 2, max_wait_ms=1000))
        await cluster.clock.advance(0.9)
        assert not task.done()
        await cluster.clock.advance(0.2)
        assert (await task).records == b""
        assert not cluster.at(1).at_watermark
        await cluster.close()

    run(scenario())


def test_available_bytes_count_for_min_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        await cluster.produce(1, "a")
        size = len(batch("a"))
        task = asyncio.create_task(cluster.consume(1, 0, max_wait_ms=1000, min_bytes=2 * size))
        await settle()
        assert not task.done()
        await cluster.produce(1, "b")
        await settle()
        assert (await task).records == cluster.bytes_at(1)
        await cluster.close()

    run(scenario())


def test_consumer_fetch_returns_with_the_high_watermark_not_the_append(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        task = asyncio.create_task(cluster.consume(1, 0, max_wait_ms=60_000))
        await cluster.produce(1, "a", acks=1)
        await settle()
        assert not task.done()
        cluster.cut.clear()
        await cluster.clock.advance(2)
        assert (await task).records == cluster.bytes_at(1)
        await cluster.close()

    run(scenario())


def test_cancelled_fetch_leaves_no_listeners(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        task = asyncio.create_task(cluster.consume(1, 0, max_wait_ms=60_000))
        await settle()
        assert len(cluster.at(1).at_watermark) == 1
        task.cancel()
        await settle()
        assert not cluster.at(1).at_watermark
        assert cluster.clock.waiting == 0
        await cluster.close()

    run(scenario())


@pytest.mark.parametrize(
    ("offset", "epoch", "code"),
    [
        (0, 0, 0),
        (5, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, 3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_fetch_checks_offset_and_epoch(tmp_path: Path, offset: int, epoch: int, code: int) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        await cluster.produce(1, "a")
        found = await cluster.consume(1, offset, leader_epoch=epoch, max_wait_ms=60_000)
        assert found.error_code == code
        cluster.elect(1)
        fenced = await cluster.consume(1, 0, leader_epoch=0)
        assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
        await cluster.close()

    run(scenario())


def test_fetch_returns_at_most_max_bytes_but_at_least_one_batch(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        for key in (T0, T1):
            for _ in range(3):
                await cluster.produce(1, "x" * 50, topic_partition=key)
        size = len(batch("x" * 50))
        for most, expected in ((1, (1, 0)), (2 * size, (2, 0)), (4 * size, (3, 1)), (100 * size, (3, 3))):
            targets = {key: FetchPartition(0, ALL) for key in (T0, T1)}
            answer = await cluster.brokers[1].fetch(FetchSpec(partitions=targets, max_bytes=most))
            sizes = [len(answer.partitions[key].records or b"") // size for key in (T0, T1)]
            assert tuple(sizes) == expected
        await cluster.close()

    run(scenario())


def test_session_returns_only_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        fetch = cluster.brokers[1].fetch
        first = await fetch(begin(T0, T1))
        assert first.session_id > 0
        assert set(first.partitions) == {T0, T1}
        assert (await fetch(go_on(first, 1))).partitions == {}
        await cluster.produce(1, "a", topic_partition=T1)
        second = await fetch(go_on(first, 2))
        assert set(second.partitions) == {T1}
        again = await fetch(go_on(first, 3))
        assert again.partitions[T1].records == second.partitions[T1].records
        assert (await fetch(go_on(first, 4, {T1: 1}))).partitions == {}
        await cluster.close()

    run(scenario())


def test_partitions_take_turns_in_small_responses(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        fetch = cluster.brokers[1].fetch
        for key in (T0, T1):
            await cluster.produce(1, "a", topic_partition=key)
        answer = await fetch(begin(T0, T1, max_bytes=1))
        served = []
        for epoch in range(1, 5):
            spec = FetchSpec(partitions={}, session_id=answer.session_id, session_epoch=epoch, max_bytes=1)
            found = (await fetch(spec)).partitions
            served += [key for key, each in found.items() if each.records]
        assert served == [T1, T0, T1, T0]
        await cluster.close()

    run(scenario())


def test_session_returns_the_high_watermark_again_when_the_same_fetch_is_repeated(tmp_path: Path) -> None:
    """A follower repeats a fetch whose response it has dropped."""

    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        fetch = cluster.brokers[1].fetch
        first = await fetch(begin(T0, T1))
        assert (await fetch(go_on(first, 1))).partitions == {}
        repeated = await fetch(go_on(first, 2, {T0: 0}))
        assert repeated.partitions[T0].high_watermark == 0
        assert set(repeated.partitions) == {T0}
        await cluster.close()

    run(scenario())


def test_idle_session_reads_no_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        keys = [TopicPartition("t", number) for number in range(50)]
        for key in keys:
            cluster.elect(1, is_new=True, topic_partition=key)
        fetch = cluster.brokers[1].fetch
        first = await fetch(begin(*keys))
        looks = []
        real = HostedPartition.fetch

        def counted(self: HostedPartition, *args: object, **options: object) -> object:
            looks.append(self.topic_partition)
            return real(self, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(HostedPartition, "fetch", counted)
        for epoch in range(1, 6):
            assert (await fetch(go_on(first, epoch))).partitions == {}
        assert looks == []
        await cluster.produce(1, "a", topic_partition=keys[7])
        assert set((await fetch(go_on(first, 6))).partitions) == {keys[7]}
        assert looks == [keys[7]]
        await cluster.close()

    run(scenario())


def test_session_returns_errors_of_its_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        fetch = cluster.brokers[1].fetch
        first = await fetch(begin(T0, T1))
        waiting = asyncio.create_task(
            fetch(FetchSpec(partitions={}, session_id=first.session_id, session_epoch=1, max_wait_ms=60_000))
        )
        await settle()
        assert not waiting.done()
        assert cluster.stop_replica(1, delete=True) == 0
        await settle()
        gone = (await waiting).partitions
        assert gone[T0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster.elect(1, is_new=True)
        await cluster.produce(1, "a")
        found = (await fetch(go_on(first, 2))).partitions
        assert found[T0].records
        forget = FetchSpec(partitions={}, session_id=first.session_id, session_epoch=3, forgotten=(T0,))
        assert (await fetch(forget)).partitions == {}
        await cluster.produce(1, "b")
        assert (await fetch(go_on(first, 4))).partitions == {}
        await cluster.close()

    run(scenario())


def test_second_fetch_of_a_session_ends_the_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        fetch = cluster.brokers[1].fetch
        first = await fetch(begin(T0))
        wait = {"session_id": first.session_id, "max_wait_ms": 60_000}
        former = asyncio.create_task(fetch(FetchSpec(partitions={}, session_epoch=1, **wait)))
        await settle()
        more = {T1: FetchPartition(0, ALL)}
        latter = asyncio.create_task(fetch(FetchSpec(partitions=more, session_epoch=2, **wait)))
        await settle()
        assert former.done()
        assert not latter.done()
        await cluster.produce(1, "a", topic_partition=T1)
        await settle()
        assert (await latter).partitions[T1].records
        await cluster.close()

    run(scenario())


def test_unknown_session_or_wrong_epoch_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await two_partitions(tmp_path)
        fetch = cluster.brokers[1].fetch
        first = await fetch(begin(T0))
        assert (await fetch(go_on(first, 2))).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        unknown = FetchSpec(partitions={}, session_id=first.session_id + 1, session_epoch=1)
        assert (await fetch(unknown)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        last = await fetch(FetchSpec(partitions={}, session_id=first.session_id, session_epoch=-1))
        assert (last.error_code, last.session_id) == (0, 0)
        assert (await fetch(go_on(first, 1))).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert not cluster.at(1).at_watermark
        await cluster.close()

    run(scenario())


def test_session_slots_go_to_active_clients(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HandClock()
        sessions = FetchSessions(clock, slots=2, eviction_ms=1000)
        consumer = sessions.resolve(begin(T0))
        assert isinstance(consumer, Session)
        assert isinstance(sessions.resolve(begin(T0, replica_id=2)), Session)
        assert sessions.resolve(begin(T0)) is None
        await clock.advance(2)
        newer = sessions.resolve(begin(T0))
        assert isinstance(newer, Session)
        gone = FetchSpec(partitions={}, session_id=consumer.session_id, session_epoch=1)
        assert sessions.resolve(gone) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert isinstance(sessions.resolve(begin(T0, replica_id=3)), Session)
        assert isinstance(sessions.resolve(begin(T0, replica_id=4)), Session)
        assert len(sessions) == 2
        await clock.advance(2)
        assert sessions.resolve(begin(T0)) is None
        sessions.close()
        assert len(sessions) == 0

    run(scenario())


def test_follower_fetches_added_partition_without_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await cluster.clock.advance(0.1)
        cluster.elect(1, is_new=True, topic_partition=T1)
        waiting = cluster.produce(1, "a", topic_partition=T1)
        await settle()
        assert waiting.done()
        assert (await waiting).error_code == 0
        await cluster.clock.advance(2)
        both = [cluster.produce(1, "b", topic_partition=key) for key in (T0, T1)]
        await settle()
        assert all(task.done() for task in both)
        await cluster.close()

    run(scenario())


def test_follower_fetches_without_a_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.start(2)
        await cluster.stop(1)
        cluster.start(1, session_slots=0)
        cluster.elect(1, is_new=True, replicas=[1, 2])
        await cluster.clock.advance(0.1)
        assert (await cluster.produce(1, "a")).error_code == 0
        del cluster.asked[:]
        await cluster.clock.advance(2)
        assert len(cluster.asked) <= 5
        await cluster.close()

    run(scenario())


class ScriptedLeader:
    """A leader whose answers the test gives, one after the other."""

    def __init__(self) -> None:
        self.asked: list[FetchSpec] = []
        self.answers: list[asyncio.Future[FetchAnswer]] = []

    async def fetch(self, spec: FetchSpec) -> FetchAnswer:
        self.asked.append(spec)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]

    def close(self) -> None:
        """Do nothing, because there is no connection."""


def test_leader_forgets_a_partition_whose_answer_came_during_a_pause(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(2, is_new=True, to=[1])
        leader = ScriptedLeader()
        fetcher = Fetcher(1, leader, cluster.clock, ReplicationConfig(), Throttles().follower)
        fetcher.add(cluster.at(1))
        await settle()
        leader.answers[0].set_result(FetchAnswer(session_id=5, partitions={T0: Fetched(0, 0, 0)}))
        await settle()
        fetcher.add(cluster.at(1))
        await settle()
        early = Fetched(0, ErrorCode.UNKNOWN_LEADER_EPOCH)
        leader.answers[1].set_result(FetchAnswer(session_id=5, partitions={T0: early}))
        leader.answers[2].set_result(FetchAnswer(session_id=5, partitions={T0: Fetched(0, 0, 1)}))
        await settle()
        assert len(leader.asked) == 3
        await cluster.clock.advance(0.1)
        assert [(tuple(each.partitions), each.forgotten) for each in leader.asked[3:]] == [
            ((), (T0,)),
            ((T0,), ()),
        ]
        await fetcher.end()
        await cluster.close()

    run(scenario())
