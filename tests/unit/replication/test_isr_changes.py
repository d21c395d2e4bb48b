"""The ISR: pure decisions, and leaders that make them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.replication.isr import FollowerProgress, behind, may_join, smallest_end, without_laggards
from restow.cluster.replication.values import FetchPartition
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.clock import settle
from tests.unit.replication.replicas import LAG_MAX_S, T0, Cluster, run

if TYPE_CHECKING:
    from pathlib import Path


def test_follower_at_the_leaders_end_has_caught_up() -> None:
    assert FollowerProgress(0.0).after_fetch(5, 0, 5, 7.0).caught_up_s == 7.0


def test_follower_at_the_previous_end_had_caught_up_at_the_previous_fetch() -> None:
    busy = FollowerProgress(0.0).after_fetch(3, 0, 5, 1.0)
    assert busy.caught_up_s == 0.0
    busy = busy.after_fetch(5, 0, 9, 2.0)
    assert busy.caught_up_s == 1.0
    slow = busy.after_fetch(8, 0, 12, 3.0)
    assert slow.caught_up_s == 1.0


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12),
)
def test_caught_up_time_is_never_too_late(steps: list[tuple[int, int]]) -> None:
    """At that time the leader's end was no further than the follower's."""
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


def test_without_laggards_removes_lagging_followers_but_not_the_leader() -> None:
    followers = {2: FollowerProgress(0.0, 5), 3: FollowerProgress(9.0, 4), 4: FollowerProgress(0.0, 4)}
    assert without_laggards((1, 2, 3, 4), followers, 5, 11.0, 10.0) == (1, 2, 3)
    assert [follower for follower, _ in behind((1, 2, 3, 4), followers, 5)] == [3, 4]
    assert without_laggards((4, 1), followers, 5, 11.0, 10.0) == (1,)


def test_may_join_needs_high_watermark_and_epoch_start() -> None:
    assert may_join(FollowerProgress(0.0, 5), 5, 5)
    assert not may_join(FollowerProgress(0.0, 4), 5, 0)
    assert not may_join(FollowerProgress(0.0, 5), 3, 6)


def test_high_watermark_is_the_smallest_end_and_unknown_end_blocks_it() -> None:
    followers = {2: FollowerProgress(0.0, 7), 3: FollowerProgress(0.0)}
    assert smallest_end((1, 2), followers, 9) == 7
    assert smallest_end((1,), followers, 9) == 9
    assert smallest_end((1, 2, 3), followers, 9) == -1


def test_lost_follower_leaves_the_isr_and_returns(tmp_path: Path) -> None:
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


def test_idle_follower_stays_in_sync_without_checks(tmp_path: Path) -> None:
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


def test_follower_that_never_fetches_leaves_the_isr(tmp_path: Path) -> None:
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


def test_larger_isr_counts_until_the_smaller_is_written(tmp_path: Path) -> None:
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


def test_larger_isr_counts_while_it_is_written(tmp_path: Path) -> None:
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


def test_isr_write_is_retried_when_the_store_is_unavailable(tmp_path: Path) -> None:
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


def test_both_isrs_count_after_a_conflict_until_the_controller_decides(tmp_path: Path) -> None:
    """The proposal may be in force: its answer may have been lost before somebody else wrote."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, isr=[1, 2], is_new=True)
        key = cluster.at(1).topic_partition
        cluster.states.version[key] += 1
        await settle()
        assert cluster.at(1).proposed_isr == (1, 2, 3)
        cluster.cut.add((3, 1))
        waiting = cluster.produce(1, "a", timeout_ms=60_000)
        await cluster.clock.advance(5)
        assert cluster.at(1).proposed_isr == (1, 2, 3)
        assert not waiting.done()
        cluster.states.version[key] += 1
        assert cluster.tell(1) == 0
        await settle()
        assert (await waiting).error_code == 0
        cluster.cut.clear()
        await cluster.clock.advance(5)
        assert cluster.at(1).isr == cluster.states.isr[key] == (1, 2, 3)
        await cluster.close()

    run(scenario())


def test_refused_replica_counts_no_more_and_is_proposed_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.states.ineligible = {3}
        cluster.elect(1, isr=[1, 2], is_new=True)
        await settle()
        assert cluster.at(1).proposed_isr is None
        cluster.cut.add((3, 1))
        assert (await cluster.produce(1, "a", timeout_ms=60_000)).error_code == 0
        cluster.states.ineligible = set()
        cluster.cut.clear()
        await cluster.clock.advance(5)
        assert cluster.at(1).isr == (1, 2, 3)
        assert cluster.states.writes == [(1, 2, 3)]
        await cluster.close()

    run(scenario())


def test_deposed_leader_cannot_shrink_its_isr_or_acknowledge(tmp_path: Path) -> None:
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


def test_leader_adopts_later_state_of_the_same_epoch(tmp_path: Path) -> None:
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


def test_broker_without_assigned_replica_does_not_join_the_isr(tmp_path: Path) -> None:
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


def test_broker_that_shuts_down_does_not_rejoin_the_isr(tmp_path: Path) -> None:
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


def test_lag_counts_from_the_last_catch_up_not_the_last_fetch() -> None:
    fetches_but_lags = FollowerProgress(caught_up_s=0.0, end_offset=4, fetched_s=100.0, leader_end=5)
    assert without_laggards((1, 2), {2: fetches_but_lags}, 5, 100.0, 10.0) == (1,)
    silent_but_recent = FollowerProgress(caught_up_s=95.0, end_offset=4, fetched_s=0.0, leader_end=5)
    assert without_laggards((1, 2), {2: silent_but_recent}, 5, 100.0, 10.0) == (1, 2)


def test_lag_of_exactly_the_maximum_is_allowed() -> None:
    assert without_laggards((1, 2), {2: FollowerProgress(90.0, 4)}, 5, 100.0, 10.0) == (1, 2)


def test_follower_that_never_catches_up_leaves_the_isr(tmp_path: Path) -> None:
    """Every fetch is further on, but the leader is always ahead."""

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


def test_removed_member_counts_until_the_smaller_isr_is_written(tmp_path: Path) -> None:
    """Either ISR may be in force: a record acknowledged by the smaller one could be lost."""

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


def test_broker_without_replica_cannot_fetch_as_follower(tmp_path: Path) -> None:
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


def test_new_leader_ignores_followers_progress_until_they_fetch(tmp_path: Path) -> None:
    """A follower may have truncated since the earlier epoch."""

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


def test_lag_starts_with_the_first_missed_append(tmp_path: Path) -> None:
    """Without appends a silent follower has everything."""

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
