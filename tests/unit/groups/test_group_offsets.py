"""Offset commits: allowed members, and visibility once they are written."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster.groups import CommitRequest, FetchedOffsets, GroupState, OffsetToCommit
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import (
    GROUP,
    ORDERS,
    PAYMENTS,
    Workbench,
    commit,
    fetched,
    run,
    settle,
)


def test_offsets_are_committed_without_a_group() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert await fetched(bench) is None
            assert await commit(bench) is ErrorCode.NONE
            everything = await bench.coordinator.fetch_offsets(GROUP)
            assert everything == FetchedOffsets(ErrorCode.NONE, {ORDERS: OffsetToCommit(5, 2, "note")})
            assert await bench.state() is GroupState.EMPTY

    run(test)


def test_commit_is_refused_outside_of_the_generation() -> None:
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


def test_commit_is_refused_between_join_and_sync() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            member = (await bench.join()).member_id
            assert await commit(bench, member_id=member, generation=1) is ErrorCode.REBALANCE_IN_PROGRESS

    run(test)


def test_commit_with_generation_is_refused_for_unknown_group() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert await commit(bench, member_id="m", generation=3) is ErrorCode.ILLEGAL_GENERATION

    run(test)


def test_commit_refuses_long_metadata_and_writes_the_rest() -> None:
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
def test_failed_write_commits_nothing(failure: ErrorCode | Exception, error: ErrorCode) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, 1)
            bench.journal.errors.append(failure)
            assert await commit(bench, 2) is error
            assert await fetched(bench) == 1
            assert await commit(bench, 3) is ErrorCode.NONE

    run(test)


def test_concurrent_commits_are_written_together_and_in_order() -> None:
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


def test_commit_of_disconnected_client_counts() -> None:
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
