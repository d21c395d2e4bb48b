"""The lag-aware assignor: even work, bounded counts, few moves, no swinging."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.assignors import Member, TopicPartition, assign, compare, settled
from restow.assignors.lag_aware import LagAware
from restow.assignors.work import decode_work, encode_work, expected_work
from restow.errors import InvalidGroup
from tests.seeds import seeded

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_SKEW = 4
TOLERANCE = 0.25


def group(count: int, topics: tuple[str, ...] = ("t",)) -> list[Member]:
    return [Member(id=f"c{number:03}", topics=topics) for number in range(count)]


def holding(members: list[Member], answer: Mapping[str, list[TopicPartition]]) -> list[Member]:
    return [replace(member, owned=tuple(answer.get(member.id, ()))) for member in members]


def loads(answer: Mapping[str, list[TopicPartition]], work: Mapping[TopicPartition, float]) -> list[float]:
    return [sum(work[each] for each in mine) for mine in answer.values()]


def drawn(partitions: int, *, heavy: float = 1.0) -> dict[TopicPartition, float]:
    """Return work that differs as much as that of real topics does."""
    amounts = np.random.default_rng(seeded(18)).lognormal(0.0, heavy, partitions) * 1000
    return {TopicPartition("t", number): float(amount) for number, amount in enumerate(amounts)}


@pytest.mark.parametrize("members", [2, 7, 20])
def test_work_is_even_and_counts_are_within_the_skew(members: int) -> None:
    work = drawn(members * 12)
    answer, _ = settled("lag-aware", {"t": len(work)}, group(members), work=work)
    counts = [len(mine) for mine in answer.values()]
    mean = sum(work.values()) / members
    assert max(counts) - min(counts) <= MOST_SKEW
    assert max(loads(answer, work)) <= max((1 + TOLERANCE) * mean, *work.values())
    by_count, _ = settled("cooperative-sticky", {"t": len(work)}, group(members))
    assert max(loads(answer, work)) <= max(loads(by_count, work))


def test_nothing_moves_while_work_changes_a_little() -> None:
    members, work = group(10), drawn(200)
    answer, _ = settled("lag-aware", {"t": 200}, members, work=work)
    random = np.random.default_rng(seeded(18))
    for _ in range(20):
        changed = {where: amount * random.uniform(0.95, 1.05) for where, amount in work.items()}
        again, _ = settled("lag-aware", {"t": 200}, holding(members, answer), work=changed)
        assert compare(answer, again).moved == 0


def test_work_that_comes_and_goes_does_not_swing_the_group() -> None:
    """One partition is hot, then another: only what is needed moves, and it settles in one rebalance."""
    members = group(6)
    calm = {TopicPartition("t", number): 100.0 for number in range(60)}
    answer, _ = settled("lag-aware", {"t": 60}, members, work=calm)
    for hot in (3, 17, 3):
        work = calm | {TopicPartition("t", hot): 2_000.0}
        again, _ = settled("lag-aware", {"t": 60}, holding(members, answer), work=work)
        assert compare(answer, again).moved <= 6
        third, _ = settled("lag-aware", {"t": 60}, holding(members, again), work=work)
        assert third == again
        answer = again


def test_unknown_work_makes_it_cooperative_sticky() -> None:
    members = group(4)
    for before in ({}, assign("range", {"t": 13}, members[:3])):
        asked = {"t": 13}, holding(members, before)
        assert assign("lag-aware", *asked) == assign("cooperative-sticky", *asked)


def test_partitions_change_owners_in_two_rounds() -> None:
    members = group(2)
    work = {TopicPartition("t", number): 1000.0 if number < 4 else 1.0 for number in range(8)}
    lopsided = {
        "c000": [TopicPartition("t", n) for n in range(4)],
        "c001": [TopicPartition("t", n) for n in range(4, 8)],
    }
    first = assign("lag-aware", {"t": 8}, holding(members, lopsided), work=work)
    assert sum(len(mine) for mine in first.values()) < 8
    last, rounds = settled("lag-aware", {"t": 8}, holding(members, lopsided), work=work)
    assert rounds == 2
    assert max(loads(last, work)) < 2_500


def test_members_tell_their_work_in_user_data() -> None:
    partitions = [TopicPartition("t", number) for number in range(6)]
    work = dict.fromkeys(partitions, 10.0) | {partitions[0]: 500.0, partitions[1]: 500.0}
    assignor = LagAware(lambda: work)
    members = [
        Member(
            id="a",
            topics=("t",),
            owned=tuple(partitions[:3]),
            user_data=assignor.user_data(partitions[:3], 4),
        ),
        Member(
            id="b",
            topics=("t",),
            owned=tuple(partitions[3:]),
            user_data=assignor.user_data(partitions[3:], 4),
        ),
    ]
    answer = assign("lag-aware", {"t": 6}, members)
    assert not {partitions[0], partitions[1]} <= set(answer["a"])
    assert decode_work(assignor.user_data(partitions[:3], 4) or b"") == (
        4,
        {p: work[p] for p in partitions[:3]},
    )


@given(st.binary(max_size=60))
def test_any_user_data_can_be_read(data: bytes) -> None:
    generation, work = decode_work(data)
    assert generation >= -(2**31)
    assert all(amount >= 0 for amount in work.values())
    decode_work(encode_work(3, {TopicPartition("t", 1): 2.0})[: len(data)])


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_any_group_gets_every_partition_once(data: st.DataObject) -> None:
    topics = data.draw(st.dictionaries(st.sampled_from("tuvw"), st.integers(1, 9), min_size=1))
    subscriptions = st.lists(st.sampled_from(sorted(topics)), min_size=1, unique=True).map(tuple)
    members = [
        Member(id=f"c{number}", topics=data.draw(subscriptions))
        for number in range(data.draw(st.integers(1, 6)))
    ]
    partitions = [TopicPartition(topic, n) for topic, size in topics.items() for n in range(size)]
    amounts = st.floats(0, 1e9)
    work = {each: data.draw(amounts) for each in partitions if data.draw(st.booleans())}
    before: dict[str, list[TopicPartition]] = {member.id: [] for member in members}
    for each in partitions:
        owner = data.draw(st.sampled_from([None, *before]))
        if owner is not None:
            before[owner].append(each)
    answer, _ = settled("lag-aware", topics, holding(members, before), work=work)
    read = {topic for member in members for topic in member.topics}
    assert sorted(each for mine in answer.values() for each in mine) == sorted(
        each for each in partitions if each.topic in read
    )
    wants = {member.id: member.topics for member in members}
    assert all(each.topic in wants[member] for member, mine in answer.items() for each in mine)
    again, _ = settled("lag-aware", topics, holding(members, answer), work=work)
    assert again == answer


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0}, {"most_skew": 0}, {"most_moved": 2}, {"tolerance": np.nan}]
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidGroup, match="lag-aware"):
        LagAware(**wrong)  # type: ignore[arg-type]


def test_expected_work_is_lag_and_what_arrives() -> None:
    here, there = TopicPartition("t", 0), TopicPartition("t", 1)
    assert expected_work({here: 5.0, there: -1.0}, {there: 2.0}, 10.0) == {here: 5.0, there: 20.0}
