"""Members of both protocols in one group, in virtual time: steps of classic members, upgrade, downgrade."""

from __future__ import annotations

from typing import Any

import pytest

from restow.cluster.groups import JoinRequest, LeavingMember
from restow.cluster.groups.consumer.embedded import decode_assignment, decode_subscription, encode_assignment
from restow.cluster.groups.fields import InvalidGroupRecord
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.unit.groups.test_consumer_groups import Bench
from tests.unit.groups.workbench import GROUP, commit, fetched, joining, restarted, run, subscription

ON_T = (("range", subscription("t")),)
T = TopicPartition("t", 0)


def classic(member: str = "", **changes: Any) -> JoinRequest:
    return joining(member, **({"protocols": ON_T} | changes))


class Mixed(Bench):
    """A bench with shortcuts for classic members."""

    async def classic(self, member: str = "", **changes: Any) -> Any:
        return await self.coordinator.join(GROUP, classic(member, **changes))

    async def synced(self, member: str, generation: int) -> list[int] | ErrorCode:
        """Return the partitions of t that a classic member is told."""
        reply = await self.sync(member, generation)
        if reply.error is not ErrorCode.NONE:
            return reply.error
        return sorted(number for _, number in decode_assignment(reply.assignment)[0])

    async def classic_group(self) -> str:
        """Make a classic group with one member, which has all partitions; return the member's id."""
        joined = await self.begin(self.classic())
        await self.clock.advance(2 * self.config.initial_rebalance_delay_ms / 1000)
        member = str((await joined).member_id)
        everything = encode_assignment([TopicPartition("t", number) for number in range(4)], 0)
        await self.sync(member, 1, assignments=((member, everything),))
        return member

    async def of_both(self) -> str:
        """Make a group of a, and a classic member with two partitions each in epoch 3; return its id."""
        await self.join("a")
        member = str((await self.classic()).member_id)
        await self.beat("a", 2, 0, 1)
        await self.classic(member)
        assert await self.synced(member, 3) == [2, 3]
        return member

    async def type(self) -> str:
        return str((await self.coordinator.list()).groups[0].type)


def test_classic_member_gets_its_share_as_others_release_it() -> None:
    async def test() -> None:
        async with Mixed() as bench:
            await bench.join("a")
            joined = await bench.classic()
            assert (joined.generation, joined.leader, joined.members) == (3, "", ())
            assert await bench.synced(joined.member_id, 3) == []
            assert await bench.heartbeat(joined.member_id, 3) is ErrorCode.NONE
            await bench.beat("a", 2, 0, 1)
            assert await bench.heartbeat(joined.member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
            assert (await bench.classic(joined.member_id)).generation == 3
            assert await bench.synced(joined.member_id, 3) == [2, 3]
            assert await bench.heartbeat(joined.member_id, 3) is ErrorCode.NONE

    run(test)


def test_classic_member_of_another_kind_is_refused() -> None:
    async def test() -> None:
        async with Mixed() as bench:
            member = await bench.of_both()
            for wrong in (
                {"protocol_type": "connect"},
                {"protocols": (("sticky", subscription("t")),)},
                {"protocols": ()},
            ):
                assert (await bench.classic(**wrong)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            assert (await bench.classic(protocols=(("range", b"?"),))).error is ErrorCode.UNKNOWN_SERVER_ERROR
            assert await bench.heartbeat("a", 3) is ErrorCode.UNKNOWN_MEMBER_ID
            assert await bench.heartbeat(member, 2) is ErrorCode.ILLEGAL_GENERATION
            assert await bench.synced("nobody", 3) is ErrorCode.UNKNOWN_MEMBER_ID
            assert len((await bench.described()).members) == 2

    run(test)


@pytest.mark.parametrize("waits_for", ["session", "join", "sync"])
def test_classic_member_that_stays_silent_is_removed(waits_for: str) -> None:
    async def test() -> None:
        async with Mixed() as bench:
            timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000}
            await bench.join("a", rebalance_timeout_ms=600_000)
            member = (await bench.classic(**timeouts)).member_id
            if waits_for == "join":
                await bench.synced(member, 3)
                await bench.beat("a", 2, 0, 1)
            seconds = 0
            while len((await bench.described()).members) == 2:
                assert seconds < 60, "the member is still there"
                await bench.clock.advance(1)
                await bench.beat("a", (await bench.described()).members[0][0].epoch)
                if waits_for != "session":
                    await bench.heartbeat(member, 3)
                seconds += 1
            assert seconds == {"session": 10, "sync": 20, "join": 21}[waits_for]

    run(test)


def test_member_of_the_other_protocol_upgrades_a_classic_group() -> None:
    async def test() -> None:
        async with Mixed() as bench:
            member = await bench.classic_group()
            assert await commit(bench, 7, T, generation=1, member_id=member) is ErrorCode.NONE
            assert (await bench.join("a", pattern="(")).error is ErrorCode.INVALID_REGULAR_EXPRESSION
            assert await bench.type() == "classic"
            assert (await bench.join("a")).epoch == 2
            await restarted(bench)
            assert await bench.type() == "consumer"
            assert await fetched(bench, T) == 7
            assert await commit(bench, 8, T, generation=1, member_id=member) is ErrorCode.NONE
            assert await commit(bench, 9, T, generation=2, member_id=member) is ErrorCode.ILLEGAL_GENERATION
            assert await bench.heartbeat(member, 1) is ErrorCode.REBALANCE_IN_PROGRESS
            assert (await bench.classic(member)).generation == 2
            assert await bench.synced(member, 2) == [0, 1]
            assert sorted(n for _, n in (await bench.beat("a", 2)).assignment) == [2, 3]

    run(test)


def test_waiting_classic_members_are_told_to_join_the_upgraded_group() -> None:
    async def test() -> None:
        async with Mixed() as bench:
            member = await bench.classic_group()
            waiting = await bench.begin(bench.classic())
            assert (await bench.join("a")).error is ErrorCode.NONE
            assert (await waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
            assert {m.id for m, _ in (await bench.described()).members} >= {member, "a"}

    run(test)


@pytest.mark.parametrize("how", ["leaves", "is silent", "is removed"])
def test_group_goes_back_when_the_last_member_of_the_protocol_is_gone(how: str) -> None:
    async def test() -> None:
        async with Mixed() as bench:
            member = await bench.of_both()
            if how == "leaves":
                await bench.beat("a", -1)
            elif how == "is removed":
                await bench.coordinator.leave(GROUP, [LeavingMember("a")])
            else:
                for _ in range(5):
                    await bench.clock.advance(9)
                    await bench.heartbeat(member, 3)
            assert await bench.type() == "classic"
            assert await bench.heartbeat(member, 3) is ErrorCode.REBALANCE_IN_PROGRESS
            assert await commit(bench, 5, T, generation=3, member_id=member) is ErrorCode.NONE
            joined = await bench.classic(member)
            assert (joined.generation, joined.leader, len(joined.members)) == (4, member, 1)
            await restarted(bench)
            assert await bench.type() == "classic"

    run(test)


def test_static_member_takes_the_group_back_without_a_rebalance() -> None:
    async def test() -> None:
        async with Mixed() as bench:
            await bench.join("a", instance_id="one")
            other = (await bench.classic()).member_id
            await bench.beat("a", 2, 0, 1, instance_id="one")
            await bench.classic(other)
            back = await bench.classic(instance_id="one")
            assert (back.error, back.generation) == (ErrorCode.NONE, 3)
            assert await bench.type() == "classic"
            assert await bench.heartbeat(back.member_id, 3, "one") is ErrorCode.NONE
            assert await bench.synced(other, 3) == [2, 3]
            assert (await bench.beat("a", 3, instance_id="one")).error is ErrorCode.GROUP_ID_NOT_FOUND

    run(test)


@pytest.mark.parametrize("policy", ["may_upgrade", "may_downgrade"])
def test_migration_policy_keeps_groups_as_they_are(policy: str) -> None:
    async def test() -> None:
        async with Mixed(**{policy: False}) as bench:
            if policy == "may_upgrade":
                await bench.classic_group()
                assert (await bench.join("a")).error is ErrorCode.GROUP_ID_NOT_FOUND
                assert await bench.type() == "classic"
            else:
                member = await bench.of_both()
                await bench.beat("a", -1)
                assert await bench.type() == "consumer"
                assert (await bench.classic(member)).generation == 4
                assert await bench.synced(member, 4) == [0, 1, 2, 3]

    run(test)


def test_classic_member_goes_on_at_the_next_coordinator() -> None:
    async def test() -> None:
        async with Mixed() as bench:
            member = await bench.of_both()
            before = await bench.described()
            await restarted(bench)
            after = await bench.described()
            assert sorted(after.members, key=str) == sorted(before.members, key=str)
            assert await bench.heartbeat(member, 3) is ErrorCode.NONE
            assert await bench.synced(member, 3) == [2, 3]
            await bench.clock.advance(29)
            assert await bench.heartbeat(member, 3) is ErrorCode.NONE

    run(test)


def test_lost_tombstones_leave_one_group() -> None:
    """The write that ends the classic group fails; the group's next records are of the other protocol."""

    async def test() -> None:
        async with Mixed() as bench:
            await bench.classic_group()
            bench.journal.errors.append(ErrorCode.REQUEST_TIMED_OUT)
            await bench.join("a")
            await bench.join("a")
            await restarted(bench)
            assert await bench.type() == "consumer"
            assert len((await bench.described()).members) == 2

    run(test)


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_are_read_as_clients_write_them(version: int) -> None:
    owned = ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=[3, 1])
    fields: dict[str, Any] = {"topics": ["t", "u"], "user_data": b"x", "owned_partitions": [owned]}
    said = ConsumerProtocolSubscription(version=version, generation_id=4, rack_id="r1", **fields)
    read = decode_subscription(bytes(said.encode()))
    assert (read.version, read.topics) == (version, ("t", "u"))
    assert read.owned == ((TopicPartition("t", 3), TopicPartition("t", 1)) if version else ())
    assert read.rack == ("r1" if version == 3 else None)
    for cut in range(len(said.encode())):
        with pytest.raises(InvalidGroupRecord):
            decode_subscription(bytes(said.encode())[:cut])


def test_assignments_are_written_as_clients_read_them() -> None:
    given = [TopicPartition("u", 1), TopicPartition("t", 2), TopicPartition("t", 0)]
    read = ConsumerProtocolAssignment.decode(encode_assignment(given, 1))
    assert [(each.topic, list(each.partitions)) for each in read.assigned_partitions] == [
        ("t", [0, 2]),
        ("u", [1]),
    ]
    assert decode_assignment(encode_assignment(given, 0)) == (tuple(sorted(given)), b"")
