"""Descriptions, deletions and expiry of groups."""

from __future__ import annotations

from restow.cluster.groups import GroupState, LeavingMember
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import (
    GROUP,
    ORDERS,
    PAYMENTS,
    Workbench,
    commit,
    fetched,
    joining,
    restarted,
    run,
    subscription,
)

DAY_S = 24 * 60 * 60


def test_groups_are_listed_and_described() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), _ = await bench.stable("a")
            ((group_id, protocol_type, state, kind),) = (await bench.coordinator.list()).groups
            assert (group_id, protocol_type, state, kind) == (GROUP, "consumer", "Stable", "classic")
            shown = await bench.coordinator.describe(GROUP)
            assert shown.protocol_name == "range"
            assert [(each.member_id, each.assignment) for each in shown.members] == [(member, b"a")]
            await bench.begin(bench.join())
            shown = await bench.coordinator.describe(GROUP)
            assert (shown.state, shown.protocol_name) == (GroupState.PREPARING_REBALANCE, "")
            assert {each.assignment for each in shown.members} == {b""}
            assert (await bench.coordinator.describe("other")).state is GroupState.DEAD

    run(test)


def test_delete_groups_deletes_only_empty_groups_for_good() -> None:
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


def test_delete_offsets_refuses_subscribed_topics() -> None:
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


def test_delete_offsets_of_non_consumer_group_needs_empty_group() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await bench.stable("a", protocol_type="connect")
            reply = await bench.coordinator.delete_offsets(GROUP, [ORDERS])
            assert reply.error is ErrorCode.NON_EMPTY_GROUP

    run(test)


def test_offsets_of_deleted_partitions_are_deleted() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, 1)
            await commit(bench, 2, PAYMENTS)
            await bench.coordinator.partitions_deleted([ORDERS])
            await restarted(bench)
            assert (await fetched(bench), await fetched(bench, PAYMENTS)) == (None, 2)

    run(test)


def test_old_offsets_expire() -> None:
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


def test_stable_group_keeps_offsets_and_empty_group_until_retention() -> None:
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


def test_offset_with_own_retention_expires_by_it() -> None:
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


def test_offset_with_the_longest_retention_is_kept() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await commit(bench, retention_ms=2**63 - 1)
            await restarted(bench)
            await bench.coordinator.expire()
            assert await fetched(bench) == 5

    run(test)


def test_loaded_group_above_max_size_rebalances() -> None:
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
