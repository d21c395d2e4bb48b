"""Offsets are committed, fetched, forgotten, and outlive their coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from restow.cluster.groups import CommitRequest, FetchedOffsets, GroupState, LeavingMember, OffsetToCommit
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import GROUP, PARTITIONS, Workbench, joining, run, settle, subscription

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 1)
DAY_S = 24 * 60 * 60


async def commit(
    bench: Workbench, offset: int = 5, partition: TopicPartition = ORDERS, **who: Any
) -> ErrorCode:
    request = CommitRequest(offsets={partition: OffsetToCommit(offset, 2, "note")}, **who)
    return (await bench.coordinator.commit_offsets(GROUP, request))[partition]


async def fetched(bench: Workbench, partition: TopicPartition = ORDERS) -> int | None:
    error, offsets = await bench.coordinator.fetch_offsets(GROUP, [partition])
    assert error is ErrorCode.NONE
    found = offsets[partition]
    return None if found is None else found.offset


async def restarted(bench: Workbench) -> None:
    """All partitions move away and come back."""
    for partition in range(PARTITIONS):
        bench.coordinator.unload(partition)
    for partition in range(PARTITIONS):
        await bench.coordinator.load(partition)


def test_offsets_without_a_group() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert await fetched(bench) is None
            assert await commit(bench) is ErrorCode.NONE
            everything = await bench.coordinator.fetch_offsets(GROUP)
            assert everything == FetchedOffsets(ErrorCode.NONE, {ORDERS: OffsetToCommit(5, 2, "note")})
            assert await bench.state() is GroupState.EMPTY

    run(test)


def test_members_commit_in_their_generation() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member, _), generation = await bench.stable("a", "@b")
            assert await commit(bench, member_id=member, generation=generation) is ErrorCode.NONE
            refusals = [
                ({"member_id": member, "generation": generation - 1}, ErrorCode.ILLEGAL_GENERATION),
                ({"member_id": "nobody", "generation": generation}, ErrorCode.UNKNOWN_MEMBER_ID),
                ({}, ErrorCode.UNKNOWN_MEMBER_ID),
                (
                    {"member_id": member, "generation": generation, "instance_id": "b"},
                    ErrorCode.FENCED_INSTANCE_ID,
                ),
            ]
            for who, error in refusals:
                assert await commit(bench, 9, **who) is error
            await bench.begin(bench.join(member))
            assert await commit(bench, 6, member_id=member, generation=generation) is ErrorCode.NONE
            assert await fetched(bench) == 6

    run(test)


def test_no_commits_between_join_and_sync() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            member = (await bench.join()).member_id
            assert await commit(bench, member_id=member, generation=1) is ErrorCode.REBALANCE_IN_PROGRESS

    run(test)


def test_a_generation_of_a_group_that_is_not_there() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert await commit(bench, member_id="m", generation=3) is ErrorCode.ILLEGAL_GENERATION

    run(test)


def test_long_notes_are_refused_and_the_rest_is_written() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            offsets = {ORDERS: OffsetToCommit(1, -1, "x" * 4097), PAYMENTS: OffsetToCommit(2, -1, "x" * 4096)}
            results = await bench.coordinator.commit_offsets(GROUP, CommitRequest(offsets=offsets))
            assert results == {ORDERS: ErrorCode.OFFSET_METADATA_TOO_LARGE, PAYMENTS: ErrorCode.NONE}
            assert await fetched(bench) is None
            assert await fetched(bench, PAYMENTS) == 2

    run(test)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ConnectionError("lost"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_could_not_be_written_is_not_committed(failure: ErrorCode | Exception, error: ErrorCode) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, 1)
            bench.journal.errors.append(failure)
            assert await commit(bench, 2) is error
            assert await fetched(bench) == 1
            assert await commit(bench, 3) is ErrorCode.NONE

    run(test)


def test_commits_that_come_together_are_written_together_and_in_order() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            bench.journal.hold()
            commits = [await bench.begin(commit(bench, offset)) for offset in range(40)]
            assert await fetched(bench) is None
            bench.journal.release()
            assert {await each for each in commits} == {ErrorCode.NONE}
            assert bench.journal.batches == [1, 39]
            assert await fetched(bench) == 39

    run(test)


def test_a_commit_whose_client_went_away_still_counts() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            bench.journal.hold()
            lost = asyncio.ensure_future(commit(bench, 8))
            await settle()
            lost.cancel()
            await asyncio.wait([lost])
            bench.journal.release()
            await settle()
            assert await fetched(bench) == 8

    run(test)


# Loading


def test_groups_and_offsets_outlive_their_coordinator() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (first, second), generation = await bench.stable("a", "@b")
            await commit(bench, member_id=first, generation=generation)
            before = await bench.coordinator.describe(GROUP)
            await restarted(bench)
            assert await bench.coordinator.describe(GROUP) == before
            assert await fetched(bench) == 5
            assert await bench.heartbeat(first, generation) is ErrorCode.NONE
            assert (await bench.sync(second, generation, instance_id="b")).assignment == b"@b"
            await bench.clock.advance(31)
            assert await bench.heartbeat(first, generation) is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)


def test_whoever_waits_is_sent_to_the_next_coordinator() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), _ = await bench.stable("a", "b")
            join = await bench.begin(bench.join(leader))
            bench.journal.hold()
            for partition in range(PARTITIONS):
                bench.coordinator.unload(partition)
            assert (await join).error is ErrorCode.NOT_COORDINATOR
            assert (await bench.join(follower)).error is ErrorCode.NOT_COORDINATOR
            assert await commit(bench) is ErrorCode.NOT_COORDINATOR
            assert bench.clock.armed == 0

    run(test)


def test_what_is_queued_when_the_partition_moves_is_not_acknowledged() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            bench.journal.hold()
            commits = [await bench.begin(commit(bench, offset)) for offset in range(3)]
            for partition in range(PARTITIONS):
                bench.coordinator.unload(partition)
            bench.journal.release()
            outcomes = [await each for each in commits]
            assert outcomes == [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR]
            await restarted(bench)
            assert await fetched(bench) == 0

    run(test)


def test_while_loading() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), generation = await bench.stable("a")
            for partition in range(PARTITIONS):
                bench.coordinator.unload(partition)
            bench.journal.hold()
            loads = [await bench.begin(bench.coordinator.load(partition)) for partition in range(PARTITIONS)]
            in_progress = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert (await bench.join(member)).error is in_progress
            assert await commit(bench) is in_progress
            assert (await bench.coordinator.fetch_offsets(GROUP)).error is in_progress
            assert (await bench.coordinator.list()).error is in_progress
            assert (await bench.coordinator.describe(GROUP)).error is in_progress
            assert (await bench.coordinator.leave(GROUP, [LeavingMember(member)])).error is in_progress
            assert await bench.coordinator.delete_groups([GROUP]) == {GROUP: in_progress}
            assert await bench.heartbeat(member, generation) is ErrorCode.NONE
            assert (await bench.sync(member, generation)).error is ErrorCode.REBALANCE_IN_PROGRESS
            bench.journal.release()
            await asyncio.gather(*loads)
            assert await bench.heartbeat(member, generation) is ErrorCode.NONE

    run(test)


def test_a_load_that_is_overtaken_by_an_unload_ends_quietly() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, 4)
            bench.journal.hold()
            for partition in range(PARTITIONS):
                bench.coordinator.unload(partition)
            overtaken = [await bench.begin(bench.coordinator.load(each)) for each in range(PARTITIONS)]
            for partition in range(PARTITIONS):
                bench.coordinator.unload(partition)
            bench.journal.release()
            await asyncio.gather(*overtaken)
            assert await commit(bench) is ErrorCode.NOT_COORDINATOR
            await restarted(bench)
            assert await fetched(bench) == 4

    run(test)


def test_records_that_cannot_be_read_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            for log in (bench.journal.logs[partition] for partition in range(PARTITIONS)):
                log += [
                    (None, b""),
                    (b"\0\1", b""),
                    (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\x09"),
                    (b"\0\x08?", b""),
                ]
            await commit(bench, 4)
            await restarted(bench)
            assert await fetched(bench) == 4

    run(test)
    assert "record 0 of groups' partition" in caplog.text


# Operators, expiry


def test_groups_are_listed_and_described() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), _ = await bench.stable("a")
            ((group_id, protocol_type, state),) = (await bench.coordinator.list()).groups
            assert (group_id, protocol_type, state) == (GROUP, "consumer", GroupState.STABLE)
            shown = await bench.coordinator.describe(GROUP)
            assert shown.protocol_name == "range"
            assert [(each.member_id, each.assignment) for each in shown.members] == [(member, b"a")]
            await bench.begin(bench.join())
            shown = await bench.coordinator.describe(GROUP)
            assert (shown.state, shown.protocol_name) == (GroupState.PREPARING_REBALANCE, "")
            assert {each.assignment for each in shown.members} == {b""}
            assert (await bench.coordinator.describe("other")).state is GroupState.DEAD

    run(test)


def test_only_empty_groups_are_deleted_and_they_stay_deleted() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), generation = await bench.stable("a")
            await commit(bench, member_id=member, generation=generation)
            delete = bench.coordinator.delete_groups
            assert await delete([GROUP, "other"]) == {
                GROUP: ErrorCode.NON_EMPTY_GROUP,
                "other": ErrorCode.GROUP_ID_NOT_FOUND,
            }
            await bench.coordinator.leave(GROUP, [LeavingMember(member)])
            assert await delete([GROUP]) == {GROUP: ErrorCode.NONE}
            await restarted(bench)
            assert (await bench.coordinator.list()).groups == ()
            assert await fetched(bench) is None

    run(test)


def test_offsets_of_topics_in_use_are_not_deleted() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), generation = await bench.stable("a")
            for partition in (ORDERS, PAYMENTS):
                await commit(bench, 3, partition, member_id=member, generation=generation)
            reply = await bench.coordinator.delete_offsets(GROUP, [ORDERS, PAYMENTS])
            assert reply.partitions == {
                ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
                PAYMENTS: ErrorCode.NONE,
            }
            await restarted(bench)
            assert (await fetched(bench), await fetched(bench, PAYMENTS)) == (3, None)
            unknown = await bench.coordinator.delete_offsets("other", [ORDERS])
            assert unknown.error is ErrorCode.GROUP_ID_NOT_FOUND

    run(test)


def test_offsets_of_other_kinds_of_groups_are_deleted_only_when_empty() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await bench.stable("a", protocol_type="connect")
            reply = await bench.coordinator.delete_offsets(GROUP, [ORDERS])
            assert reply.error is ErrorCode.NON_EMPTY_GROUP

    run(test)


def test_offsets_of_deleted_partitions_are_forgotten() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, 1)
            await commit(bench, 2, PAYMENTS)
            await bench.coordinator.partitions_deleted([ORDERS])
            await restarted(bench)
            assert (await fetched(bench), await fetched(bench, PAYMENTS)) == (None, 2)

    run(test)


def test_old_offsets_expire_by_themselves() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            bench.coordinator.start()
            await commit(bench)
            await bench.clock.advance(7 * DAY_S - 1200)
            assert await fetched(bench) == 5
            await bench.clock.advance(1800)
            assert (await bench.coordinator.list()).groups == ()
            await restarted(bench)
            assert await fetched(bench) is None

    run(test)


def test_a_group_at_work_keeps_its_offsets_and_an_empty_one_for_a_while() -> None:
    async def test() -> None:
        async with Workbench(offsets_retention_ms=100_000) as bench:
            (member,), generation = await bench.stable("a", session_timeout_ms=1_000_000)
            for partition in (ORDERS, PAYMENTS):
                await commit(bench, 3, partition, member_id=member, generation=generation)
            await bench.clock.advance(150)
            await bench.coordinator.expire()
            assert (await fetched(bench), await fetched(bench, PAYMENTS)) == (3, None)
            await bench.coordinator.leave(GROUP, [LeavingMember(member)])
            await bench.clock.advance(99)
            await bench.coordinator.expire()
            assert await fetched(bench) == 3
            await bench.clock.advance(1)
            await bench.coordinator.expire()
            assert await fetched(bench) is None
            await restarted(bench)
            assert (await bench.coordinator.list()).groups == ()

    run(test)


def test_an_offset_with_its_own_retention_obeys_that() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, retention_ms=5_000)
            await restarted(bench)
            await bench.clock.advance(4)
            await bench.coordinator.expire()
            assert await fetched(bench) == 5
            await bench.clock.advance(1)
            await bench.coordinator.expire()
            assert await fetched(bench) is None

    run(test)


def test_a_group_that_is_larger_than_allowed_when_loaded_rebalances() -> None:
    async def test() -> None:
        async with Workbench() as large:
            ids, _ = await large.stable("a", "b", "c")
            async with Workbench(large.journal, max_size=2) as small:
                assert await small.state() is GroupState.PREPARING_REBALANCE
                requests = [joining(each, protocols=(("range", subscription("orders")),)) for each in ids]
                joins = [await small.begin(small.coordinator.join(GROUP, each)) for each in requests]
                errors = [(await join).error for join in joins]
                assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]

    run(test)
