"""Members join, wait for each other, and get a leader."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster.groups import GroupState, LeavingMember
from restow.wire.error_codes import ErrorCode
from tests.clock import settle
from tests.unit.groups.workbench import GROUP, Workbench, joining, run


def test_first_member_waits_for_others_and_leads() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            join = await bench.begin(bench.join(client_id="a"))
            await bench.clock.advance(2.9)
            assert not join.done()
            await bench.clock.advance(0.1)
            reply = await join
            assert reply.error is ErrorCode.NONE
            assert reply.generation == 1
            assert reply.leader == reply.member_id == "a-1"
            assert reply.protocol_type == "consumer"
            assert reply.protocol_name == "range"
            assert [member.member_id for member in reply.members] == ["a-1"]
            assert await bench.state() is GroupState.COMPLETING_REBALANCE

    run(test)


def test_members_that_join_during_the_initial_delay_share_the_first_generation() -> None:
    """Each new member extends the delay, but not beyond the rebalance timeout."""

    async def test() -> None:
        async with Workbench() as bench:
            joins = []
            for _ in range(4):
                joins.append(await bench.begin(bench.join(rebalance_timeout_ms=8_000)))
                await bench.clock.advance(2.5)
            replies = [await join for join in joins]
            assert {reply.generation for reply in replies} == {1}
            assert sum(bool(reply.members) for reply in replies) == 1
            assert len(replies[0].members) == 4

    run(test)


def test_first_member_starts_at_once_without_initial_delay() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            assert (await bench.join()).generation == 1

    run(test)


def test_new_member_first_gets_its_id() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            refused = await bench.join(needs_known_id=True)
            assert refused.error is ErrorCode.MEMBER_ID_REQUIRED
            assert refused.member_id == "client-1"
            joined = await bench.join(refused.member_id, needs_known_id=True)
            assert joined.error is ErrorCode.NONE
            assert joined.member_id == "client-1"

    run(test)


def test_unused_member_id_expires_after_a_session() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            refused = await bench.join(needs_known_id=True)
            await bench.clock.advance(30)
            late = await bench.join(refused.member_id, needs_known_id=True)
            assert late.error is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)


def test_generation_waits_for_members_that_have_an_id() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), generation = await bench.stable("a")
            given = await bench.join(needs_known_id=True)
            first = await bench.begin(bench.join(member))
            assert not first.done()
            second = await bench.begin(bench.join(given.member_id, needs_known_id=True))
            assert (await first).generation == (await second).generation == generation + 1

    run(test)


def test_group_chooses_protocol_by_vote() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            protocols = (
                (("range", b"1"), ("sticky", b"2"), ("mine", b"3")),
                (("sticky", b"4"), ("range", b"5")),
                (("sticky", b"6"), ("range", b"7")),
            )
            joins = [await bench.begin(bench.join(protocols=wanted)) for wanted in protocols]
            await bench.clock.advance(6)
            replies = [await join for join in joins]
            assert {reply.protocol_name for reply in replies} == {"sticky"}
            assert [member.metadata for member in replies[0].members] == [b"2", b"4", b"6"]

    run(test)


@pytest.mark.parametrize(
    "changes",
    [
        {"protocols": (("other", b""),)},
        {"protocols": ()},
        {"protocol_type": "connect"},
    ],
)
def test_join_is_refused_without_a_shared_protocol(changes: dict[str, object]) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await bench.stable("a")
            assert (await bench.join(**changes)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(test)


@pytest.mark.parametrize("changes", [{"protocols": ()}, {"protocol_type": ""}])
def test_first_join_is_refused_without_a_protocol(changes: dict[str, object]) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert (await bench.join(**changes)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(test)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001, 0, -1])
def test_join_is_refused_with_session_timeout_out_of_bounds(timeout_ms: int) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            reply = await bench.join(session_timeout_ms=timeout_ms)
            assert reply.error is ErrorCode.INVALID_SESSION_TIMEOUT

    run(test)


@pytest.mark.parametrize(
    ("group", "changes", "error"),
    [
        ("", {}, ErrorCode.INVALID_GROUP_ID),
        ("g" * 40_000, {}, ErrorCode.INVALID_GROUP_ID),
        (GROUP, {"instance_id": "i" * 32_767}, ErrorCode.INVALID_REQUEST),
        (GROUP, {"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_invalid_join_is_refused(group: str, changes: dict[str, object], error: ErrorCode) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert (await bench.coordinator.join(group, joining(**changes))).error is error

    run(test)


def test_full_group_refuses_new_members() -> None:
    async def test() -> None:
        async with Workbench(max_size=2) as bench:
            (first, second), _ = await bench.stable("a", "b")
            assert (await bench.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED
            await bench.begin(bench.join(first))
            newcomer = await bench.begin(bench.join(client_id="quick"))
            assert (await bench.join(second)).error is ErrorCode.GROUP_MAX_SIZE_REACHED
            assert (await newcomer).error is ErrorCode.NONE

    run(test)


def test_rejoin_starts_a_rebalance_only_for_the_leader() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), generation = await bench.stable("a", "b")
            again = await bench.join(follower)
            assert again.generation == generation
            assert again.members == ()
            assert await bench.state() is GroupState.STABLE
            await bench.begin(bench.join(leader))
            assert await bench.state() is GroupState.PREPARING_REBALANCE
            assert await bench.heartbeat(follower, generation) is ErrorCode.REBALANCE_IN_PROGRESS

    run(test)


def test_rejoin_with_changed_metadata_starts_a_rebalance() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (_, follower), _ = await bench.stable("a", "b")
            await bench.begin(bench.join(follower, protocols=(("range", b"else"),)))
            assert await bench.state() is GroupState.PREPARING_REBALANCE

    run(test)


def test_members_that_do_not_rejoin_in_time_are_removed() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), generation = await bench.stable("a", "b", session_timeout_ms=90_000)
            rejoin = await bench.begin(bench.join(leader))
            await bench.clock.advance(59.9)
            assert not rejoin.done()
            await bench.clock.advance(0.1)
            reply = await rejoin
            assert reply.generation == generation + 1
            assert [member.member_id for member in reply.members] == [leader]
            assert await bench.heartbeat(follower, generation) is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)


def test_repeated_join_drops_the_first_request() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), generation = await bench.stable("a", "b")
            first = await bench.begin(bench.join(leader))
            second = await bench.begin(bench.join(leader))
            assert (await first).error is ErrorCode.REBALANCE_IN_PROGRESS
            await bench.begin(bench.join(follower))
            assert (await second).generation == generation + 1

    run(test)


def test_disconnected_member_does_not_disturb_the_others() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            lost = asyncio.ensure_future(bench.join())
            await settle()
            lost.cancel()
            join = await bench.begin(bench.join())
            await bench.clock.advance(6)
            assert (await join).error is ErrorCode.NONE
            await asyncio.wait([lost])

    run(test)


def test_leave_answers_each_member() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (first, second), generation = await bench.stable("a", "@b")
            reply = await bench.coordinator.leave(
                GROUP,
                [
                    LeavingMember(first),
                    LeavingMember("nobody"),
                    LeavingMember("wrong", "b"),
                    LeavingMember(instance_id="unknown"),
                    LeavingMember(instance_id="b"),
                ],
            )
            assert reply.error is ErrorCode.NONE
            assert [error for _, error in reply.members] == [
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.NONE,
            ]
            assert await bench.state() is GroupState.EMPTY
            assert await bench.heartbeat(second, generation) is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)


def test_waiting_member_gets_error_when_removed() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), _ = await bench.stable("a", "b")
            waiting = await bench.begin(bench.join(leader))
            await bench.coordinator.leave(GROUP, [LeavingMember(leader)])
            assert (await waiting).error is ErrorCode.UNKNOWN_MEMBER_ID
            joined = await bench.join(follower)
            assert joined.leader == follower

    run(test)


def test_member_id_that_has_not_joined_can_leave() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            given = await bench.join(needs_known_id=True)
            reply = await bench.coordinator.leave(GROUP, [LeavingMember(given.member_id)])
            assert reply.members[0][1] is ErrorCode.NONE
            assert (await bench.join(given.member_id)).error is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)
