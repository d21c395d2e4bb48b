"""Members come, wait for each other, and are told who leads."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster.groups import GroupState, LeavingMember
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import GROUP, Workbench, joining, run, settle


def test_a_first_member_waits_for_others_and_leads() -> None:
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


def test_members_of_a_starting_group_share_its_first_generation() -> None:
    """Each newcomer lets the group wait a little more, but not beyond the rebalance timeout."""

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


def test_without_a_delay_the_first_member_begins_at_once() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            assert (await bench.join()).generation == 1

    run(test)


def test_a_new_member_is_first_given_its_id() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            refused = await bench.join(needs_known_id=True)
            assert refused.error is ErrorCode.MEMBER_ID_REQUIRED
            assert refused.member_id == "client-1"
            joined = await bench.join(refused.member_id, needs_known_id=True)
            assert joined.error is ErrorCode.NONE
            assert joined.member_id == "client-1"

    run(test)


def test_an_id_that_is_not_used_within_a_session_is_forgotten() -> None:
    async def test() -> None:
        async with Workbench(initial_rebalance_delay_ms=0) as bench:
            refused = await bench.join(needs_known_id=True)
            await bench.clock.advance(30)
            late = await bench.join(refused.member_id, needs_known_id=True)
            assert late.error is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)


def test_a_generation_waits_for_those_who_were_given_an_id() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), generation = await bench.stable("a")
            given = await bench.join(needs_known_id=True)
            first = await bench.begin(bench.join(member))
            assert not first.done()
            second = await bench.begin(bench.join(given.member_id, needs_known_id=True))
            assert (await first).generation == (await second).generation == generation + 1

    run(test)


def test_protocols_are_voted_on() -> None:
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
def test_a_member_must_share_a_protocol(changes: dict[str, object]) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await bench.stable("a")
            assert (await bench.join(**changes)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(test)


@pytest.mark.parametrize("changes", [{"protocols": ()}, {"protocol_type": ""}])
def test_a_first_member_must_name_a_protocol(changes: dict[str, object]) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert (await bench.join(**changes)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(test)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001, 0, -1])
def test_session_timeouts_have_bounds(timeout_ms: int) -> None:
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
def test_requests_that_cannot_be(group: str, changes: dict[str, object], error: ErrorCode) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            assert (await bench.coordinator.join(group, joining(**changes))).error is error

    run(test)


def test_a_full_group_takes_nobody_else() -> None:
    async def test() -> None:
        async with Workbench(max_size=2) as bench:
            (first, second), _ = await bench.stable("a", "b")
            assert (await bench.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED
            await bench.begin(bench.join(first))
            newcomer = await bench.begin(bench.join(client_id="quick"))
            assert (await bench.join(second)).error is ErrorCode.GROUP_MAX_SIZE_REACHED
            assert (await newcomer).error is ErrorCode.NONE

    run(test)


def test_the_leader_that_joins_again_starts_a_rebalance_and_others_do_not() -> None:
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


def test_a_follower_that_changed_its_mind_starts_a_rebalance() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (_, follower), _ = await bench.stable("a", "b")
            await bench.begin(bench.join(follower, protocols=(("range", b"else"),)))
            assert await bench.state() is GroupState.PREPARING_REBALANCE

    run(test)


def test_members_that_do_not_join_again_in_time_are_out() -> None:
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


def test_a_join_that_is_repeated_gives_up_the_first_answer() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), generation = await bench.stable("a", "b")
            first = await bench.begin(bench.join(leader))
            second = await bench.begin(bench.join(leader))
            assert (await first).error is ErrorCode.REBALANCE_IN_PROGRESS
            await bench.begin(bench.join(follower))
            assert (await second).generation == generation + 1

    run(test)


def test_a_member_whose_client_went_away_does_not_disturb_the_others() -> None:
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


def test_leaving_members_are_answered_one_by_one() -> None:
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


def test_whoever_waits_and_is_sent_away_hears_of_it() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (leader, follower), _ = await bench.stable("a", "b")
            waiting = await bench.begin(bench.join(leader))
            await bench.coordinator.leave(GROUP, [LeavingMember(leader)])
            assert (await waiting).error is ErrorCode.UNKNOWN_MEMBER_ID
            joined = await bench.join(follower)
            assert joined.leader == follower

    run(test)


def test_a_pending_id_can_leave_too() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            given = await bench.join(needs_known_id=True)
            reply = await bench.coordinator.leave(GROUP, [LeavingMember(given.member_id)])
            assert reply.members[0][1] is ErrorCode.NONE
            assert (await bench.join(given.member_id)).error is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)
