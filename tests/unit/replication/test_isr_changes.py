"""Who is in sync: the decisions by themselves, and leaders that make them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.replication.isr import FollowerProgress, behind, may_join, smallest_end, without_laggards
from restow.cluster.replication.values import FetchPartition
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.replication.replicas import LAG_MAX_S, T0, Cluster, run, settle

if TYPE_CHECKING:
    from pathlib import Path


def test_who_asks_for_the_end_has_caught_up() -> None:
    assert FollowerProgress(0.0).after_fetch(5, 0, 5, 7.0).caught_up_s == 7.0


def test_who_reaches_what_was_the_end_had_caught_up_then() -> None:
    busy = FollowerProgress(0.0).after_fetch(3, 0, 5, 1.0)
    assert busy.caught_up_s == 0.0
    busy = busy.after_fetch(5, 0, 9, 2.0)
    assert busy.caught_up_s == 1.0
    slow = busy.after_fetch(8, 0, 12, 3.0)
    assert slow.caught_up_s == 1.0


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12),
)
def test_nobody_has_caught_up_later_than_they_could(steps: list[tuple[int, int]]) -> None:
    """The moment told is one at which the leader's end was no further than what the follower has."""
    progress = FollowerProgress(0.0)
    ends = [(0.0, 0)]
    leader_end = follower_end = 0
    for number, (grown, fetched) in enumerate(steps, start=1):
        leader_end += grown
        follower_end = min(leader_end, follower_end + fetched)
        ends.append((float(number), leader_end))
        progress = progress.after_fetch(follower_end, 0, leader_end, float(number))
    end_then = max(end for at_s, end in ends if at_s <= progress.caught_up_s)
    assert end_then <= follower_end


def test_laggards_go_and_the_leader_stays() -> None:
    followers = {2: FollowerProgress(0.0, 5), 3: FollowerProgress(9.0, 4), 4: FollowerProgress(0.0, 4)}
    assert without_laggards((1, 2, 3, 4), followers, 5, 11.0, 10.0) == (1, 2, 3)
    assert [follower for follower, _ in behind((1, 2, 3, 4), followers, 5)] == [3, 4]
    assert without_laggards((4, 1), followers, 5, 11.0, 10.0) == (1,)


def test_who_may_join_has_the_watermark_and_the_epochs_start() -> None:
    assert may_join(FollowerProgress(0.0, 5), 5, 5)
    assert not may_join(FollowerProgress(0.0, 4), 5, 0)
    assert not may_join(FollowerProgress(0.0, 5), 3, 6)


def test_the_smallest_end_counts_and_an_unknown_one_holds_all_back() -> None:
    followers = {2: FollowerProgress(0.0, 7), 3: FollowerProgress(0.0)}
    assert smallest_end((1, 2), followers, 9) == 7
    assert smallest_end((1,), followers, 9) == 9
    assert smallest_end((1, 2, 3), followers, 9) == -1


def test_a_lost_follower_leaves_and_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "a")
        cluster.cut.add((3, 1))
        await cluster.clock.advance(1)
        waiting = cluster.produce(1, "b", timeout_ms=60_000)
        await cluster.clock.advance(LAG_MAX_S - 1)
        assert not waiting.done()
        await cluster.clock.advance(2)
        assert cluster.states.isr[cluster.at(1).topic_partition] == cluster.at(1).isr == (1, 2)
        assert (await waiting).error_code == 0
        cluster.cut.clear()
        await cluster.clock.advance(3)
        assert cluster.at(1).isr == (1, 2, 3)
        assert cluster.states.writes == [(1, 2), (1, 2, 3)]
        assert cluster.bytes_at(3) == cluster.bytes_at(1)
        await cluster.close()

    run(scenario())


def test_an_idle_follower_stays_in_sync_and_nobody_looks(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        for number in range(20):
            cluster.elect(1, is_new=True, topic_partition=TopicPartition("t", number))
        await cluster.clock.advance(3 * LAG_MAX_S)
        assert cluster.at(1).isr == (1, 2)
        assert len(cluster.brokers[1]._reviews) == 0
        del cluster.asked[:]
        await cluster.clock.advance(5)
        assert 0 < len(cluster.asked) <= 11
        assert all(not spec.partitions for _, spec in cluster.asked)
        assert cluster.states.writes == []
        await cluster.close()

    run(scenario())


def test_a_follower_that_never_came_is_out_in_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.cut.add((2, 1))
        cluster.elect(1, is_new=True)
        await cluster.clock.advance(LAG_MAX_S - 1)
        assert cluster.at(1).isr == (1, 2)
        await cluster.clock.advance(2)
        assert cluster.at(1).isr == (1,)
        await cluster.close()

    run(scenario())


def test_until_a_smaller_isr_is_written_the_larger_one_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        cluster.states.held = asyncio.Event()
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await cluster.clock.advance(LAG_MAX_S + 2)
        assert cluster.at(1).proposed_isr == (1,)
        assert not waiting.done()
        cluster.states.held.set()
        await settle()
        assert (await waiting).error_code == 0
        await cluster.close()

    run(scenario())


def test_from_when_a_larger_isr_is_being_written_it_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.states.held = asyncio.Event()
        cluster.elect(1, isr=[1], is_new=True)
        await settle()
        assert cluster.at(1).proposed_isr == (1, 2)
        cluster.cut.add((2, 1))
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await settle()
        assert not waiting.done()
        cluster.cut.clear()
        await cluster.clock.advance(1)
        assert (await waiting).error_code == 0
        cluster.states.held.set()
        await settle()
        assert cluster.at(1).isr == (1, 2)
        await cluster.close()

    run(scenario())


def test_a_store_that_is_away_is_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.states.broken = True
        cluster.elect(1, isr=[1], is_new=True)
        await cluster.clock.advance(3)
        assert cluster.at(1).isr == (1,)
        assert cluster.at(1).proposed_isr == (1, 2)
        cluster.states.broken = False
        await cluster.clock.advance(2)
        assert cluster.at(1).isr == (1, 2)
        await cluster.close()

    run(scenario())


def test_a_deposed_leader_cannot_shrink_its_isr_nor_acknowledge(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        cluster.elect(2, isr=[2], to=[2])
        waiting = cluster.produce(1, "lost, but never acknowledged", timeout_ms=30_000)
        await cluster.clock.advance(LAG_MAX_S + 5)
        assert cluster.states.writes == []
        assert cluster.at(1).isr == (1, 2)
        assert not waiting.done()
        await cluster.clock.advance(30)
        assert (await waiting).error_code
        await cluster.close()

    run(scenario())


def test_a_later_state_of_the_same_epoch_is_taken_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, is_new=True, to=[1, 2])
        await settle()
        key = cluster.at(1).topic_partition
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await settle()
        assert not waiting.done()
        cluster.states.isr[key] = (1, 2)
        cluster.states.version[key] += 1
        assert cluster.tell(1) == 0
        await settle()
        assert cluster.at(1).isr == (1, 2)
        assert (await waiting).error_code == 0
        assert cluster.tell(1) == 0
        await cluster.close()

    run(scenario())


def test_who_is_not_a_replica_does_not_join(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.elect(1, replicas=[1, 2], isr=[1, 2], to=[1, 2])
        await cluster.clock.advance(5)
        assert cluster.at(1).isr == (1, 2)
        assert cluster.states.writes == []
        await cluster.close()

    run(scenario())


def test_a_broker_that_takes_its_leave_is_not_taken_in_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.brokers[1].leaving = True
        cluster.elect(2, isr=(2, 3))
        task = cluster.produce(2, "after")
        await cluster.clock.advance(30)
        assert (await task).error_code == 0
        assert cluster.states.isr[T0] == (2, 3)
        await cluster.close()

    run(scenario())


def test_lag_counts_from_the_last_catch_up_and_not_from_the_last_fetch() -> None:
    fetches_but_lags = FollowerProgress(caught_up_s=0.0, end_offset=4, fetched_s=100.0, leader_end=5)
    assert without_laggards((1, 2), {2: fetches_but_lags}, 5, 100.0, 10.0) == (1,)
    silent_but_recent = FollowerProgress(caught_up_s=95.0, end_offset=4, fetched_s=0.0, leader_end=5)
    assert without_laggards((1, 2), {2: silent_but_recent}, 5, 100.0, 10.0) == (1, 2)


def test_lag_may_be_exactly_as_long_as_it_may() -> None:
    assert without_laggards((1, 2), {2: FollowerProgress(90.0, 4)}, 5, 100.0, 10.0) == (1, 2)


def test_follower_that_fetches_all_the_time_but_never_catches_up_is_dropped(tmp_path: Path) -> None:
    """Every fetch shows it a little further, and the leader always further still."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.cut.add((2, 1))
        cluster.elect(1, is_new=True)
        leader = cluster.at(1)
        for _ in range(10):
            await cluster.produce(1, "a", "b", "c", acks=1)
        for number in range(1, int(3 * LAG_MAX_S)):
            await cluster.produce(1, "a", "b", acks=1)
            leader.fetch(FetchPartition(number, 1, leader.leader_epoch), 2, 100, min_one=True)
            await cluster.clock.advance(1)
            if leader.isr == (1,):
                break
        assert leader.isr == (1,)
        assert leader.followers[2].fetched_s > leader.followers[2].caught_up_s
        await cluster.close()

    run(scenario())


def test_until_a_smaller_isr_is_written_whoever_is_to_go_still_counts(tmp_path: Path) -> None:
    """Nobody knows yet which of the two holds: acknowledged by the smaller one, a record could be lost."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        cluster.states.held = asyncio.Event()
        waiting = cluster.produce(1, "a", timeout_ms=600_000)
        await cluster.clock.advance(LAG_MAX_S + 5)
        assert cluster.at(1).proposed_isr == (1,)
        assert cluster.at(1).log.high_watermark == 0
        await cluster.produce(1, "b", acks=1)
        assert cluster.at(1).log.high_watermark == 0
        assert not waiting.done()
        cluster.states.held.set()
        await settle()
        assert cluster.at(1).isr == (1,)
        assert (await waiting).error_code == 0
        assert cluster.at(1).log.high_watermark == 2
        await cluster.close()

    run(scenario())


def test_broker_that_has_no_replica_cannot_fetch_as_follower(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.elect(1, is_new=True)
        await cluster.produce(1, "a")
        leader = cluster.at(1)
        for stranger in (2, 9):
            found = leader.fetch(FetchPartition(1, 100, leader.leader_epoch), stranger, 100, min_one=True)
            assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert found.records == b""
        assert leader.followers == {}
        await cluster.close()

    run(scenario())


def test_leader_of_a_new_epoch_knows_nothing_of_its_followers_until_they_fetch(tmp_path: Path) -> None:
    """What a follower had in an earlier epoch it may have cut off since."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "a")
        await cluster.clock.advance(1)
        assert cluster.at(1).followers[2].end_offset == 1
        cluster.cut.add((2, 1))
        cluster.elect(1)
        assert cluster.at(1).followers[2] == FollowerProgress(cluster.clock.monotonic_s())
        cluster.cut.clear()
        await cluster.clock.advance(2)
        assert cluster.at(1).followers[2].end_offset == 1
        await cluster.close()

    run(scenario())


def test_follower_falls_behind_with_the_append_it_misses_and_not_with_its_last_fetch(tmp_path: Path) -> None:
    """As long as nothing was written it had everything, however long it had been silent."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "a")
        await cluster.clock.advance(1)
        cluster.cut.add((2, 1))
        await cluster.clock.advance(3 * LAG_MAX_S)
        await cluster.produce(1, "b", acks=1)
        await cluster.clock.advance(LAG_MAX_S - 1)
        assert cluster.at(1).isr == (1, 2)
        await cluster.clock.advance(LAG_MAX_S / 5 + 1)
        assert cluster.at(1).isr == (1,)
        await cluster.close()

    run(scenario())
