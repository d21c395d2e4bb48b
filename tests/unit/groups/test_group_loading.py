"""Groups move with their partition: records are read back, waiting members get NOT_COORDINATOR."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.groups import LeavingMember
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import (
    GROUP,
    PARTITIONS,
    Workbench,
    commit,
    fetched,
    restarted,
    run,
)

if TYPE_CHECKING:
    import pytest


def test_groups_and_offsets_are_loaded_by_the_next_coordinator() -> None:
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


def test_waiting_members_are_sent_to_the_next_coordinator() -> None:
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
            assert bench.clock.waiting == 0

    run(test)


def test_queued_writes_are_not_acknowledged_after_unload() -> None:
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


def test_requests_are_answered_while_loading() -> None:
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


def test_load_ends_quietly_after_an_unload() -> None:
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


def test_load_skips_unreadable_records(caplog: pytest.LogCaptureFixture) -> None:
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
    assert "skipped record 0 of __consumer_offsets-" in caplog.text
