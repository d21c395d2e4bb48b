"""Groups of the protocol `consumer` in virtual time: epochs, reconciliation, fencing, loading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from restow.assignors import Assignor, register
from restow.assignors import registry as assignors
from restow.cluster.groups import CommitRequest, HeartbeatRequest, LeavingMember, OffsetToCommit
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import GROUP, PARTITIONS, Workbench, fetched, restarted, run

FIRST = HeartbeatRequest(
    member_id="a",
    epoch=0,
    rebalance_timeout_ms=60_000,
    topics=("t",),
    owned=frozenset(),
    client_id="client",
    client_host="/127.0.0.1",
)


class Bench(Workbench):
    """A workbench with a topic of four partitions and shortcuts for heartbeats."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self.topics.make("t", 4)

    async def join(self, member: str = "a", **changes: Any) -> Any:
        return await self.send(replace(FIRST, member_id=member, **changes))

    async def beat(self, member: str, epoch: int, *owned: int, **changes: Any) -> Any:
        """Send a heartbeat; with partitions of t, it says that these are all it owns."""
        if owned:
            changes["owned"] = self.partitions(*owned)
        rest = HeartbeatRequest(
            member_id=member, epoch=epoch, client_id="client", client_host="/127.0.0.1", **changes
        )
        return await self.send(rest)

    async def send(self, request: HeartbeatRequest) -> Any:
        return await self.coordinator.consumer_heartbeat(GROUP, request)

    def partitions(self, *numbers: int) -> frozenset[Any]:
        return frozenset((self.topics.id_of("t"), number) for number in numbers)

    async def described(self) -> Any:
        return await self.coordinator.describe_consumer(GROUP)

    async def pair(self) -> None:
        """Make a group of a and b with two partitions each, in epoch 3."""
        await self.join("a")
        await self.join("b")
        await self.beat("a", 2)
        await self.beat("a", 2, 0, 1)
        await self.beat("b", 3)


async def committed(bench: Bench, partition: TopicPartition, offset: int, **who: Any) -> ErrorCode:
    request = CommitRequest(offsets={partition: OffsetToCommit(offset)}, has_member_epoch=True, **who)
    return (await bench.coordinator.commit_offsets(GROUP, request))[partition]


def numbers(reply: Any) -> list[int]:
    return sorted(number for _, number in reply.assignment)


def test_first_member_gets_everything_in_its_first_answer() -> None:
    async def test() -> None:
        async with Bench() as bench:
            reply = await bench.join()
            assert (reply.error, reply.member_id, reply.epoch) == (ErrorCode.NONE, "a", 2)
            assert (numbers(reply), reply.heartbeat_interval_ms) == ([0, 1, 2, 3], 5_000)
            assert (await bench.beat("a", 2)).assignment is None
            assert (await bench.described()).state.value == "Stable"

    run(test)


def test_partition_is_given_out_only_after_its_owner_has_revoked_it() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join("a")
            assert numbers(await bench.join("b")) == []
            assert numbers(await bench.beat("a", 2)) == [0, 1]
            assert (await bench.beat("b", 3)).assignment is None
            assert (await bench.beat("a", 2, 0, 1, 2)).epoch == 2
            assert (await bench.beat("b", 3)).assignment is None
            assert (await bench.beat("a", 2, 0, 1)).epoch == 3
            assert numbers(await bench.beat("b", 3)) == [2, 3]

    run(test)


def test_member_that_does_not_revoke_in_time_is_removed() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join("a")
            await bench.join("b")
            await bench.beat("a", 2)
            for _ in range(2):
                await bench.clock.advance(29)
                assert (await bench.beat("a", 2)).error is ErrorCode.NONE
                await bench.beat("b", 3)
            await bench.clock.advance(3)
            assert (await bench.beat("a", 2)).error is ErrorCode.UNKNOWN_MEMBER_ID
            assert numbers(await bench.beat("b", 3)) == [0, 1, 2, 3]

    run(test)


def test_member_that_is_not_heard_of_loses_its_partitions() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.pair()
            await bench.clock.advance(40)
            assert (await bench.beat("b", 3)).assignment is None
            await bench.clock.advance(6)
            reply = await bench.beat("b", 3)
            assert (numbers(reply), reply.epoch) == ([0, 1, 2, 3], 4)

    run(test)


def test_new_partitions_and_topics_reach_members_with_their_heartbeats() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join()
            bench.topics.make("t", 6)
            assert numbers(await bench.beat("a", 2)) == [0, 1, 2, 3, 4, 5]
            bench.topics.make("other", 1)
            assert (await bench.beat("a", 3)).assignment is None
            bench.topics.delete("t")
            assert numbers(await bench.beat("a", 3)) == []

    run(test)


def test_regular_expression_follows_the_topics_of_the_cluster() -> None:
    async def test() -> None:
        async with Bench() as bench:
            reply = await bench.join(topics=None, pattern="u[0-9]+|t")
            assert numbers(reply) == [0, 1, 2, 3]
            bench.topics.make("u1", 1)
            bench.topics.make("v", 1)
            assert (await bench.beat("a", 2)).assignment is None
            await bench.clock.advance(10)
            assert numbers(await bench.beat("a", 2)) == [0, 0, 1, 2, 3]

    run(test)


def test_regular_expressions_that_cannot_be_used_are_refused() -> None:
    async def test() -> None:
        async with Bench() as bench:
            for pattern in ("(", r"(a)\1", "a(?=b)", "x{1001}"):
                reply = await bench.join(topics=None, pattern=pattern)
                assert reply.error is ErrorCode.INVALID_REGULAR_EXPRESSION
            assert (await bench.coordinator.list()).groups == ()

    run(test)


def test_group_is_full_when_it_has_its_most_members() -> None:
    async def test() -> None:
        async with Bench(consumer_max_size=1) as bench:
            await bench.join("a")
            assert (await bench.join("b")).error is ErrorCode.GROUP_MAX_SIZE_REACHED
            assert (await bench.join("a")).error is ErrorCode.NONE

    run(test)


def test_group_is_loaded_by_the_next_coordinator_as_it_was() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.pair()
            more = {"instance_id": "i", "rack": "r", "server_assignor": "range"}
            await bench.join("c", topics=None, pattern="t", **more)
            await bench.beat("a", 3)
            before = await bench.described()
            assert before.state.value == "Reconciling"
            await restarted(bench)
            assert await bench.described() == before
            assert (await bench.beat("a", 3, 0)).epoch == 3
            assert (await bench.beat("a", 3, owned=frozenset())).epoch == 4
            await bench.clock.advance(46)
            assert (await bench.described()).members == ()

    run(test)


def test_revocation_is_waited_for_by_the_next_coordinator() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join("a")
            await bench.join("b")
            await bench.beat("a", 2)
            await restarted(bench)
            assert (await bench.beat("b", 3)).assignment is None
            await bench.clock.advance(44)
            await bench.beat("a", 2)
            await bench.beat("b", 3)
            await bench.clock.advance(17)
            assert (await bench.beat("a", 2)).error is ErrorCode.UNKNOWN_MEMBER_ID

    run(test)


def test_failed_write_is_made_up_for_by_the_next() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join("a")
            bench.journal.errors.append(ErrorCode.NOT_ENOUGH_REPLICAS)
            reply = await bench.join("b")
            assert reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (await bench.join("c")).error is ErrorCode.NONE
            before = await bench.described()
            await restarted(bench)
            after = await bench.described()
            assert {m.id for m, _ in after.members} == {"a", "b", "c"}
            assert sorted(after.members, key=str) == sorted(before.members, key=str)

    run(test)


def test_heartbeat_without_news_is_answered_only_when_the_log_has_caught_up() -> None:
    async def test() -> None:
        async with Bench() as bench:
            bench.journal.errors += [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS]
            assert (await bench.join()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (await bench.beat("a", 2)).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (await bench.beat("a", 2)).error is ErrorCode.NONE
            before = await bench.described()
            await restarted(bench)
            assert await bench.described() == before

    run(test)


def test_empty_group_changes_its_protocol_and_keeps_its_offsets() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join()
            partition = TopicPartition("t", 0)
            assert await committed(bench, partition, 7, member_id="a", generation=2) is ErrorCode.NONE
            assert (await bench.beat("a", -1)).epoch == -1
            ids, _ = await bench.stable("classic")
            refused = await bench.join("b")  # its assignment cannot be read
            assert refused.error is ErrorCode.GROUP_ID_NOT_FOUND
            await bench.coordinator.leave(GROUP, [LeavingMember(ids[0])])
            await bench.clock.advance(1)
            await restarted(bench)
            assert (await bench.coordinator.list()).groups[0].type == "classic"
            assert numbers(await bench.join("b")) == [0, 1, 2, 3]
            await restarted(bench)
            assert (await bench.coordinator.list()).groups[0].type == "consumer"
            assert await fetched(bench, partition) == 7

    run(test)


def test_deleted_group_leaves_nothing_behind() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join()
            assert await bench.coordinator.delete_groups([GROUP]) == {GROUP: ErrorCode.NON_EMPTY_GROUP}
            await bench.beat("a", -1)
            assert await bench.coordinator.delete_groups([GROUP]) == {GROUP: ErrorCode.NONE}
            await restarted(bench)
            assert (await bench.coordinator.list()).groups == ()

    run(test)


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    async def test() -> None:
        async with Bench(offsets_retention_ms=60_000) as bench:
            await bench.join()
            for topic in ("t", "gone"):
                await committed(bench, TopicPartition(topic, 0), 1, member_id="a", generation=2)
            for _ in range(3):
                await bench.clock.advance(30)
                await bench.beat("a", 2)
            await bench.coordinator.expire()
            assert await fetched(bench, TopicPartition("t", 0)) == 1
            assert await fetched(bench, TopicPartition("gone", 0)) is None

    run(test)


def test_lag_aware_assignor_of_the_broker_looks_at_lag() -> None:
    async def test() -> None:
        async with Bench(assignors=("lag-aware",)) as bench:
            await bench.join("a")
            for number in range(4):
                partition = TopicPartition("t", number)
                await committed(bench, partition, 10, member_id="a", generation=2)
                bench.topics.ends[partition] = 5_010 if number < 2 else 20
            await bench.join("b")
            heavy = [n for n in numbers(await bench.beat("a", 2, owned=bench.partitions())) if n < 2]
            assert len(heavy) == 1

    run(test)


def test_rack_aware_assignor_of_the_broker_looks_at_racks() -> None:
    async def test() -> None:
        async with Bench(assignors=("rack-uniform",)) as bench:
            bench.topics.racks = ("east", "west")
            await bench.join("a", rack="west")
            await bench.join("b", rack="east")
            assert numbers(await bench.beat("a", 2, owned=bench.partitions())) == [1, 3]

    run(test)


def test_assignor_of_a_users_own_runs_in_the_broker() -> None:
    class LastTakesAll(Assignor):
        name = "last-takes-all"

        def assign(self, partitions: Any, members: Any, partition_racks: Any = None) -> Any:
            everything = [TopicPartition(t, p) for t, count in partitions.items() for p in range(count)]
            return {m.id: everything if m is members[-1] else [] for m in members}

    async def test() -> None:
        register(LastTakesAll)
        try:
            async with Bench(assignors=("last-takes-all", "uniform")) as bench:
                await bench.join("a")
                await bench.join("b")
                assert numbers(await bench.beat("a", 2)) == []
                assert (await bench.described()).assignor == "last-takes-all"
        finally:
            assignors._known.pop("last-takes-all")

    run(test)


def test_assignor_that_fails_leaves_the_group_as_it_was() -> None:
    class Broken(Assignor):
        name = "broken"

        def assign(self, partitions: Any, members: Any, partition_racks: Any = None) -> Any:
            raise RuntimeError("out of ideas")

    async def test() -> None:
        register(Broken)
        try:
            async with Bench(assignors=("uniform", "broken")) as bench:
                await bench.join("a")
                before = await bench.described()
                reply = await bench.join("b", server_assignor="broken")
                assert (reply.error, reply.message) == (
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    "assignor 'broken' failed: RuntimeError: out of ideas",
                )
                assert await bench.described() == before
                assert (await bench.beat("a", 2)).error is ErrorCode.NONE
        finally:
            assignors._known.pop("broken")

    run(test)


def test_members_of_a_group_that_is_elsewhere_are_told() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join()
            for partition in range(PARTITIONS):
                bench.coordinator.unload(partition)
            assert (await bench.beat("a", 2)).error is ErrorCode.NOT_COORDINATOR

    run(test)
