"""Followers' logs become equal to their leader's, whatever they held before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.log import EpochStart, LeaderEpochs
from restow.cluster.replication.following import accept, divergence, find_back, truncation_offset
from restow.cluster.replication.partition import HostedPartition
from restow.cluster.replication.values import FetchPartition, PartitionRefused
from restow.wire.batches import CorruptBatch
from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import DivergingEpoch, Fetched
from tests.clock import settle
from tests.unit.log.making import batch_of, open_log
from tests.unit.replication.replicas import T0, Cluster, run

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.log import PartitionLog
    from restow.cluster.replication.partition import Surroundings


def test_truncation_offset_is_where_logs_diverge() -> None:
    epochs = LeaderEpochs((EpochStart(0, 0), EpochStart(2, 10), EpochStart(5, 20)))
    assert truncation_offset(epochs, 30, DivergingEpoch(5, 25)) == 25
    assert truncation_offset(epochs, 30, DivergingEpoch(5, 40)) == 30
    assert truncation_offset(epochs, 30, DivergingEpoch(2, 15)) == 15
    assert truncation_offset(epochs, 30, DivergingEpoch(4, 28)) == 20
    assert truncation_offset(epochs, 30, DivergingEpoch(1, 28)) == 10


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two rising logs as lists of epochs per offset, with a common prefix."""
    common = draw(st.lists(st.integers(0, 3), max_size=6).map(sorted))
    low = common[-1] if common else 0
    tails = st.lists(st.integers(low, low + 5), max_size=6).map(sorted)
    leader, follower = draw(tails), draw(tails)
    # An epoch has one leader, so two logs cannot have different records of one epoch at one offset. Only one
    # of them may continue an epoch that both know.
    own = {epoch for epoch in follower if epoch not in leader or epoch == low}
    if leader[:1] == [low] and follower[:1] == [low]:
        shared = min(leader.count(low), follower.count(low))
        common = common + [low] * shared
        leader, follower = leader[shared:], follower[shared:]
    return common + leader, common + [epoch for epoch in follower if epoch in own]


def epochs_of(log: list[int]) -> LeaderEpochs:
    starts: dict[int, int] = {}
    for offset, epoch in enumerate(log):
        starts.setdefault(epoch, offset)
    return LeaderEpochs(tuple(EpochStart(epoch, offset) for epoch, offset in starts.items()))


def leader_of(log: list[int]) -> HostedPartition:
    """Return a leader with that log and a new epoch, to find divergence."""
    held = SimpleNamespace(epochs=epochs_of([*log, 99]), end_offset=len(log) + 1)
    return HostedPartition(T0, cast("PartitionLog", held), cast("Surroundings", None))


def asked_by(follower: list[int]) -> FetchPartition:
    return FetchPartition(offset=len(follower), max_bytes=1, last_fetched_epoch=follower[-1])


@given(histories())
def test_repeated_truncation_ends_with_a_common_prefix(logs: tuple[list[int], list[int]]) -> None:
    leader, follower = logs
    partition = leader_of(leader)
    for _ in range(20):
        if not follower or (diverging := divergence(partition.log, asked_by(follower))) is None:
            break
        cut = truncation_offset(epochs_of(follower), len(follower), diverging)
        assert cut < len(follower), "each answer must lead on"
        follower = follower[:cut]
    assert follower == leader[: len(follower)]


@pytest.mark.parametrize(
    ("follower", "parted"),
    [
        ([0, 0, 2, 2], None),
        ([0, 0, 2, 2, 2], DivergingEpoch(2, 4)),
        ([0, 0, 0], DivergingEpoch(0, 2)),
        ([0, 0, 1], DivergingEpoch(0, 2)),
        ([0, 1], DivergingEpoch(0, 2)),
        ([0, 0, 2, 2, 5], DivergingEpoch(2, 4)),
    ],
)
def test_leader_returns_where_logs_diverge(follower: list[int], parted: DivergingEpoch | None) -> None:
    """Also when the leader does not know the follower's last epoch."""
    assert divergence(leader_of([0, 0, 2, 2]).log, asked_by(follower)) == parted


def test_leader_refuses_a_log_that_is_ahead_of_all_its_epochs() -> None:
    with pytest.raises(PartitionRefused) as refused:
        divergence(leader_of([0, 0]).log, FetchPartition(offset=1, max_bytes=1, last_fetched_epoch=100))
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(1, ErrorCode.NONE), (-1, ErrorCode.NONE), (0, ErrorCode.FENCED_LEADER_EPOCH)]
    + [(epoch, ErrorCode.UNKNOWN_LEADER_EPOCH) for epoch in (2, 2**31 - 1)],
)
@pytest.mark.parametrize("replica_id", [-1, 2])
def test_leader_checks_the_epoch_of_a_fetch(
    tmp_path: Path, epoch: int, code: ErrorCode, replica_id: int
) -> None:
    """The progress of a refused follower does not count."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.cut.add((2, 1))
        cluster.elect(1, is_new=True)
        cluster.elect(1)
        await cluster.produce(1, "a", acks=1)
        wanted = FetchPartition(offset=1, max_bytes=100, leader_epoch=epoch)
        found = cluster.at(1).fetch(wanted, replica_id, 100, min_one=True)
        assert found.error_code == code
        told = replica_id >= 0 and not code
        assert cluster.at(1).followers[2].end_offset == (1 if told else -1)
        assert cluster.at(1).log.high_watermark == (1 if told else 0)
        await cluster.close()

    run(scenario())


@pytest.mark.parametrize("back_as_soon", [True, False])
def test_records_of_former_leader_only_are_truncated(tmp_path: Path, back_as_soon: bool) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        assert (await cluster.produce(1, "kept")).error_code == 0
        cluster.cut |= {(2, 1), (3, 1)}
        await cluster.produce(1, "never acknowledged", acks=1)
        await cluster.produce(1, "nor this", acks=1)
        cluster.elect(2, isr=[2, 3], to=[1, 2, 3] if back_as_soon else [2, 3])
        await settle()
        assert (await cluster.produce(2, "of the new leader")).base_offset == 1
        if not back_as_soon:
            assert cluster.bytes_at(1) != cluster.bytes_at(2)
            cluster.tell(1)
        await cluster.clock.advance(2)
        assert cluster.bytes_at(1) == cluster.bytes_at(2) == cluster.bytes_at(3)
        assert cluster.at(2).isr == (2, 3, 1)
        await cluster.close()

    run(scenario())


def test_logs_that_diverged_several_times_become_equal(tmp_path: Path) -> None:
    """KIP-279: leaders of several epochs have each written records that no other replica has."""

    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "common")
        for leader in (1, 2, 1, 2, 3):
            cluster.cut |= {(source, target) for source in (1, 2, 3) for target in (1, 2, 3)}
            cluster.elect(leader, isr=[leader])
            await settle()
            for number in range(leader):
                await cluster.produce(leader, f"{leader} alone, {number}", acks=1)
            await settle()
        cluster.cut.clear()
        await cluster.clock.advance(5)
        assert cluster.bytes_at(1) == cluster.bytes_at(2) == cluster.bytes_at(3)
        assert len(cluster.at(3).isr) == 3
        await cluster.close()

    run(scenario())


@pytest.mark.parametrize("cleanly", [True, False])
def test_returning_follower_continues_at_its_end(tmp_path: Path, cleanly: bool) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        await cluster.produce(1, "a", "b")
        await cluster.clock.advance(1)
        await cluster.stop(2, cleanly=cleanly)
        await cluster.produce(1, "c", acks=1)
        cluster.start(2)
        cluster.tell(2)
        await cluster.clock.advance(2)
        assert cluster.bytes_at(2) == cluster.bytes_at(1)
        assert cluster.at(1).isr == (1, 2)
        assert cluster.at(1).log.high_watermark == 3
        await cluster.close()

    run(scenario())


def test_new_replica_starts_at_the_leaders_log_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 3)
        cluster.elect(1, replicas=[1, 2], is_new=True)
        await settle()
        for number in range(5):
            await cluster.produce(1, f"{number}")
        task = await cluster.brokers[1].delete_records({cluster.at(1).topic_partition: 3}, 5000)
        assert [each.offset for each in task.values()] == [3]
        cluster.elect(1, replicas=[1, 2, 3])
        await cluster.clock.advance(2)
        assert cluster.at(3).log.start_offset == 3
        assert cluster.at(3).log.end_offset == 5
        assert cluster.bytes_at(3) == cluster.bytes_at(1)[-len(cluster.bytes_at(3)) :]
        assert cluster.at(1).isr == (1, 2, 3)
        await cluster.close()

    run(scenario())


def test_follower_ahead_of_unclean_leader_truncates(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.cut.add((2, 1))
        for number in range(4):
            await cluster.produce(1, f"only here {number}", acks=1)
        cluster.elect(2, isr=[2])
        await cluster.clock.advance(2)
        assert cluster.bytes_at(1) == cluster.bytes_at(2) == b""
        await cluster.produce(2, "x")
        await cluster.clock.advance(1)
        assert cluster.bytes_at(1) == cluster.bytes_at(2) != b""
        await cluster.close()

    run(scenario())


def test_follower_without_a_leader_does_not_fetch(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True)
        await settle()
        cluster.elect(-1)
        del cluster.asked[:]
        await cluster.clock.advance(5)
        assert cluster.asked == []
        cluster.elect(2)
        await cluster.clock.advance(1)
        assert (await cluster.produce(2, "a")).error_code == 0
        await cluster.close()

    run(scenario())


def test_follower_retries_soon_when_the_leader_does_not_know_its_role_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True, to=[2])
        await settle()
        cluster.tell(1, is_new=True)
        await cluster.clock.advance(0.1)
        waiting = cluster.produce(1, "a")
        await settle()
        assert waiting.done()
        await cluster.close()

    run(scenario())


def test_high_watermarks_are_checkpointed_and_restored(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        cluster.brokers[1].start()
        cluster.elect(1, is_new=True)
        await cluster.produce(1, "a", "b")
        await cluster.clock.advance(6)
        await cluster.stop(1, cleanly=False)
        cluster.start(1)
        log = cluster.brokers[1].logs.get(next(iter(cluster.replicas)))
        assert log is not None
        assert log.high_watermark == 2
        await cluster.close()

    run(scenario())


def test_new_follower_copies_log_that_starts_within_a_batch(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 2)
        cluster.elect(1, is_new=True, replicas=(1,), isr=(1,))
        await cluster.produce(1, "a", "b", "c", "d")
        await cluster.produce(1, "e")
        cluster.at(1).delete_records_before(2)
        cluster.elect(1, replicas=(1, 2), isr=(1,))
        await cluster.clock.advance(3)
        follower = cluster.at(2).log
        assert (follower.start_offset, follower.end_offset) == (2, 5)
        assert cluster.bytes_at(2) == cluster.bytes_at(1)
        assert cluster.at(1).isr == (1, 2)
        await cluster.close()

    run(scenario())


@pytest.mark.parametrize(
    ("high_watermark", "start", "found", "after"),
    [
        (3, 0, True, (0, 3)),
        (0, 0, True, (0, 0)),
        (5, 0, False, (0, 5)),
        (9, 2, False, (0, 5)),
        (-1, 0, False, (0, 5)),
        (9, 7, True, (7, 7)),
        (9, 5, False, (0, 5)),
    ],
)
def test_follower_out_of_range_resets_to_the_leaders_range(
    tmp_path: Path, high_watermark: int, start: int, found: bool, after: tuple[int, int]
) -> None:
    """Its log has offsets 0 to 4. Records that the leader may not have are cut off, missing ones skipped."""
    log = open_log(tmp_path)
    for _ in range(5):
        log.append_as_leader(batch_of(b"v"), 0, 0)
    answer = Fetched(0, ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark, log_start_offset=start)
    assert find_back(log, answer) is found
    assert (log.start_offset, log.end_offset) == after
    log.release()


def follow(log: PartitionLog, records: bytes) -> None:
    follower = HostedPartition(T0, log, cast("Surroundings", None))
    try:
        accept(follower, Fetched(0, high_watermark=0, log_start_offset=0, records=records))
    finally:
        log.release()


def test_follower_leaves_out_a_last_batch_that_the_leader_has_cut(tmp_path: Path) -> None:
    """Kafka's leaders cut the last batch where the response reaches its limit."""
    first = batch_of(b"a", b"b", b"c")
    whole = first + batch_of(b"d", b"e", offset=3)
    for end in range(len(first), len(whole) + 1):
        log = open_log(tmp_path / str(end))
        follow(log, whole[:end])
        assert log.end_offset == (5 if end == len(whole) else 3)


@pytest.mark.parametrize("size", [1, 12, 60, 70])
def test_follower_refuses_a_response_without_a_whole_batch(tmp_path: Path, size: int) -> None:
    with pytest.raises(CorruptBatch):
        follow(open_log(tmp_path), batch_of(b"a", b"b", b"c")[:size])
