"""Assignments, expiring sessions and static members; no request waits for ever."""

from __future__ import annotations

import pytest

from restow.cluster.groups import GroupState
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import Workbench, run

ERRORS = [
    (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
    (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    (OSError("the disk is gone"), ErrorCode.UNKNOWN_SERVER_ERROR),
]


async def two_joined(bench: Workbench) -> tuple[str, str]:
    """Return leader and follower of a generation that waits for its assignment."""
    joins = [await bench.begin(bench.join(client_id=name)) for name in "ab"]
    await bench.clock.advance(6)
    replies = [await join for join in joins]
    return replies[0].member_id, replies[1].member_id


def test_followers_wait_for_the_leader_and_get_its_assignment() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            leader, follower = await two_joined(bench)
            waiting = await bench.begin(bench.sync(follower, 1))
            assert not waiting.done()
            own = await bench.sync(leader, 1, assignments=((follower, b"theirs"), ("stranger", b"x")))
            assert own.assignment == b""
            reply = await waiting
            assert reply.assignment == b"theirs"
            assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
            assert await bench.state() is GroupState.STABLE
            assert (await bench.sync(follower, 1)).assignment == b"theirs"

    run(test)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_invalid_sync_is_refused(changes: dict[str, object], error: ErrorCode) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            _, follower = await two_joined(bench)
            request = {"member": follower, "generation": 1, **changes}
            assert (await bench.sync(**request)).error is error

    run(test)


@pytest.mark.parametrize(("failure", "error"), ERRORS)
def test_assignment_is_not_returned_if_its_write_fails(
    failure: ErrorCode | Exception, error: ErrorCode
) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            leader, follower = await two_joined(bench)
            bench.journal.errors.append(failure)
            waiting = await bench.begin(bench.sync(follower, 1))
            reply = await bench.sync(leader, 1, assignments=((leader, b"1"), (follower, b"2")))
            assert reply.error is error
            assert reply.assignment == b""
            assert (await waiting).error is error
            assert await bench.state() is GroupState.PREPARING_REBALANCE

    run(test)


def test_rebalance_overtakes_assignment_during_its_write() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            leader, follower = await two_joined(bench)
            bench.journal.hold()
            sync = await bench.begin(bench.sync(leader, 1, assignments=((leader, b"1"), (follower, b"2"))))
            newcomer = await bench.begin(bench.join())
            assert (await sync).error is ErrorCode.REBALANCE_IN_PROGRESS
            bench.journal.release()
            rejoins = [await bench.begin(bench.join(member)) for member in (leader, follower)]
            replies = [await join for join in (*rejoins, newcomer)]
            assert {reply.generation for reply in replies} == {2}
            waiting = await bench.begin(bench.sync(follower, 2))
            assert not waiting.done()

    run(test)


def test_leader_that_never_assigns_is_removed_after_rebalance_timeout() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            leader, follower = await two_joined(bench)
            waiting = await bench.begin(bench.sync(follower, 1))
            for _ in range(3):
                assert await bench.heartbeat(leader, 1) is ErrorCode.NONE
                await bench.clock.advance(20)
            assert (await waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
            assert await bench.heartbeat(leader, 1) is ErrorCode.UNKNOWN_MEMBER_ID
            assert (await bench.join(follower)).leader == follower

    run(test)


def test_member_without_heartbeats_is_removed_after_its_session() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (first, second), generation = await bench.stable("a", "b")
            await bench.clock.advance(29)
            assert await bench.heartbeat(first, generation) is ErrorCode.NONE
            await bench.clock.advance(1)
            assert await bench.heartbeat(second, generation) is ErrorCode.UNKNOWN_MEMBER_ID
            assert await bench.heartbeat(first, generation) is ErrorCode.REBALANCE_IN_PROGRESS

    run(test)


def test_group_without_heartbeats_becomes_empty() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            await bench.stable("a", "b", "@c")
            await bench.clock.advance(100)
            assert await bench.state() is GroupState.EMPTY
            assert bench.clock.waiting == 0

    run(test)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_invalid_heartbeat_is_refused(changes: dict[str, object], error: ErrorCode) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (member,), generation = await bench.stable("a")
            assert await bench.heartbeat(**{"member": member, "generation": generation, **changes}) is error

    run(test)


# Static members


def test_static_member_returns_without_a_rebalance() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (first, old), generation = await bench.stable("a", "@b")
            back = await bench.join(instance_id="b")
            assert back.error is ErrorCode.NONE
            assert back.member_id != old
            assert (back.generation, back.leader, back.members) == (generation, first, ())
            assert await bench.state() is GroupState.STABLE
            assert (await bench.sync(back.member_id, generation, instance_id="b")).assignment == b"@b"
            assert await bench.heartbeat(old, generation, "b") is ErrorCode.FENCED_INSTANCE_ID
            assert (await bench.sync(old, generation, instance_id="b")).error is ErrorCode.FENCED_INSTANCE_ID
            assert await bench.heartbeat(old, generation) is ErrorCode.UNKNOWN_MEMBER_ID
            assert await bench.heartbeat(back.member_id, generation, "b") is ErrorCode.NONE

    run(test)


@pytest.mark.parametrize("can_skip", [True, False])
def test_returning_static_leader_does_not_assign_again(can_skip: bool) -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (old, _), generation = await bench.stable("@a", "b")
            back = await bench.join(instance_id="a", can_skip_assignment=can_skip)
            assert back.generation == generation
            assert back.skip_assignment is can_skip
            assert back.leader == (back.member_id if can_skip else old)
            assert len(back.members) == (2 if can_skip else 0)

    run(test)


def test_returning_static_member_with_other_protocol_starts_a_rebalance() -> None:
    async def test() -> None:
        protocols = (("range", b""), ("sticky", b""))
        async with Workbench() as bench:
            await bench.stable("@a", "@b", protocols=protocols)
            await bench.begin(bench.join(instance_id="b", protocols=(("sticky", b""),)))
            assert await bench.state() is GroupState.PREPARING_REBALANCE

    run(test)


def test_static_member_that_returns_between_join_and_sync_starts_a_rebalance() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            joins = [await bench.begin(bench.join(instance_id=name)) for name in "ab"]
            await bench.clock.advance(6)
            first, second = [(await join).member_id for join in joins]
            waiting = await bench.begin(bench.sync(second, 1, instance_id="b"))
            await bench.begin(bench.join(instance_id="b"))
            assert (await waiting).error is ErrorCode.FENCED_INSTANCE_ID
            assert await bench.state() is GroupState.PREPARING_REBALANCE
            assert (await bench.join(first, instance_id="a")).generation == 2

    run(test)


def test_members_with_same_instance_id_fence_each_other_while_joining() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            first = await bench.begin(bench.join(instance_id="a"))
            second = await bench.begin(bench.join(instance_id="a"))
            assert (await first).error is ErrorCode.FENCED_INSTANCE_ID
            await bench.clock.advance(6)
            assert (await second).error is ErrorCode.NONE
            assert len((await second).members) == 1

    run(test)


def test_static_member_keeps_old_id_if_the_write_fails() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (_, old), generation = await bench.stable("a", "@b")
            bench.journal.errors.append(ErrorCode.REQUEST_TIMED_OUT)
            back = await bench.join(instance_id="b", session_timeout_ms=9_000)
            assert back.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert back.member_id == ""
            assert await bench.heartbeat(old, generation, "b") is ErrorCode.NONE
            assert await bench.state() is GroupState.STABLE

    run(test)


def test_absent_static_member_stays_in_the_group_during_a_rebalance() -> None:
    async def test() -> None:
        async with Workbench() as bench:
            (first, away), _ = await bench.stable("a", "@b", session_timeout_ms=100_000)
            rejoin = await bench.begin(bench.join(first))
            await bench.clock.advance(60)
            reply = await rejoin
            assert {member.member_id for member in reply.members} == {first, away}

    run(test)
