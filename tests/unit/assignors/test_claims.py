"""Claims: the previous owners of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from restow.assignors import Member, TopicPartition, assign
from restow.assignors.claims import read_claims
from restow.assignors.group import NOBODY, NumberedGroup, by_id
from restow.assignors.user_data import Claim, encode_claim, encode_generation
from restow.errors import InvalidGroup
from tests.judge import contested, owners_before
from tests.unit.assignors.small_groups import groups, same_cases

if TYPE_CHECKING:
    from typing import Any

    from tests import judge

STICKY = ("sticky", "cooperative-sticky")
T0, T1, T2, T3 = (TopicPartition("t", p) for p in range(4))
COUNTS = {"s": 3, "t": 4, "u": 3}
ALL = tuple(COUNTS)


def claims_of(*members: Member, counts: dict[str, int] = COUNTS) -> dict[str, str]:
    """Return the previous owner of each partition; `?` and the claimants if it is contested."""
    group = NumberedGroup.of(counts, members, by_id)
    claims = read_claims(group, lambda m: Claim(m.owned, m.generation))
    names = [m.id for m in group.members]
    row = [f"{topic}-{p}" for topic in group.topics for p in range(counts[topic])]
    found = {
        partition: names[owner]
        for partition, owner in zip(row, claims.owner.tolist(), strict=True)
        if owner != NOBODY
    }
    for partition, rivals in claims.contested.items():
        assert row[partition] not in found
        found[row[partition]] = "?" + "".join(names[r] for r in rivals)
    return found


def member(name: str, *owned: Any, generation: int | None = 1, topics: tuple[str, ...] = ALL) -> Member:
    return Member(id=name, topics=topics, owned=owned, generation=generation)


def test_single_claim_is_believed() -> None:
    assert claims_of(member("a", T0, T2), member("b", T1)) == {"t-0": "a", "t-1": "b", "t-2": "a"}


def test_highest_generation_wins_in_any_order() -> None:
    old, new = member("a", T0, T1, generation=4), member("b", T0, generation=5)
    assert claims_of(old, new) == claims_of(new, old) == {"t-0": "b", "t-1": "a"}
    assert claims_of(member("a", T0, generation=5), member("b", T0, generation=4)) == {"t-0": "a"}


def test_equal_generations_contest() -> None:
    assert claims_of(member("a", T0), member("b", T0, T1)) == {"t-0": "?ab", "t-1": "b"}


def test_only_claims_of_the_highest_generation_contest() -> None:
    rivals = [member("a", T0, generation=2), member("b", T0, generation=1), member("c", T0, generation=2)]
    assert claims_of(*rivals) == {"t-0": "?ac"}
    assert claims_of(*rivals, member("d", T0, generation=3)) == {"t-0": "d"}


def test_claim_without_generation_is_the_oldest() -> None:
    assert claims_of(member("a", T0, generation=None), member("b", T0, generation=0)) == {"t-0": "b"}
    assert claims_of(member("a", T0, generation=None), member("b", T0, generation=-1)) == {"t-0": "?ab"}


def test_partition_named_twice_by_one_member_is_not_contested() -> None:
    assert claims_of(member("a", T0, T0, T1)) == {"t-0": "a", "t-1": "a"}
    assert claims_of(member("a", T0, T0), member("b", T0, T0)) == {"t-0": "?ab"}


def test_claim_of_a_missing_partition_is_ignored() -> None:
    gone, beyond = TopicPartition("gone", 0), TopicPartition("t", 4)
    assert claims_of(member("a", gone, T1, beyond)) == {"t-1": "a"}
    assert claims_of(member("a", gone)) == {}
    assert claims_of(member("a", T0), counts={"t": 0}) == {}


def test_claim_of_a_topic_without_subscribers_is_ignored() -> None:
    assert claims_of(member("a", T0, TopicPartition("u", 0), topics=("t",))) == {"t-0": "a"}


@pytest.mark.parametrize("topic", ALL)
@pytest.mark.parametrize("number", [-1, -2, 4, 2**31 - 1, -(2**31)])
def test_claim_of_an_impossible_partition_is_ignored(topic: str, number: int) -> None:
    assert claims_of(member("a", TopicPartition(topic, number), T1)) == {"t-1": "a"}


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize("topic", ALL)
@pytest.mark.parametrize("size", [2**31, 10**12, 2**40, 2**40 + 1, 2**41, 2**62, 2**63 - 1, 2**63, 2**70])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beyond_the_protocol_are_ignored_or_refused(
    name: str, topic: str, size: int, sign: int
) -> None:
    """Kafka's partitions are int32; larger numbers come from a caller's mistake, never from the wire."""
    odd, b, c = TopicPartition(topic, sign * size), member("b", T0, T1), member("c")
    try:
        answer = assign(name, COUNTS, [member("a", odd), b, c])
    except InvalidGroup:
        return
    assert answer == assign(name, COUNTS, [member("a"), b, c])


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize(
    "owned",
    [
        (("t", 0), ("t", 1), ("t", 2)),
        [["t", 0], ["t", 1], ["t", 2]],
        (("t", 0), T1, T2),
        [T0, T1, T2],
    ],
)
def test_plain_pairs_are_accepted(name: str, owned: Any) -> None:
    members = [Member(id="a", topics=("t",), owned=owned, generation=1), Member(id="b", topics=("t",))]
    answer = assign(name, {"t": 6}, members)
    assert answer["a"] == [T0, T1, T2]
    assert {type(p) for mine in answer.values() for p in mine} == {TopicPartition}
    assert {type(p.partition) for mine in answer.values() for p in mine} == {int}


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize(
    "owned",
    [
        ("t0",),
        "t-0",
        (("t",),),
        (("t", 0, 1),),
        (("t", 0, "t"), (1,)),
        (("t",), (0,)),
        (("t", "0"),),
        (("t", None),),
        ((["t"], 0),),
        (0,),
        (None,),
        (("gone", 0), ("t", "0")),
        (("gone", 0), ("t",)),
        None,
        3,
    ],
)
def test_claim_that_is_no_pair_is_refused(name: str, owned: Any) -> None:
    members = [Member(id="b", topics=("t",)), Member(id="odd", topics=("t",), owned=owned, generation=1)]
    with pytest.raises(InvalidGroup, match="odd"):
        assign(name, {"t": 4}, members)


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize("number", [0.0, 1.5, "1", b"1", [1]])
def test_partition_number_that_is_no_integer_is_refused(name: str, number: Any) -> None:
    with pytest.raises(InvalidGroup):
        assign(name, {"t": 4}, [Member(id="a", topics=("t",), owned=(("t", number),), generation=1)])


@same_cases
@given(group=groups(members=6, partitions=12))
def test_claims_equal_counting_one_by_one(group: judge.Group) -> None:
    found = claims_of(*group.members, counts=group.partitions)
    subscribed = {topic for m in group.members for topic in m.topics}
    owners = {str(p): owner for p, owner in owners_before(group).items() if p.topic in subscribed}
    assert {p: owner for p, owner in found.items() if not owner.startswith("?")} == owners
    assert {p for p in found if found[p].startswith("?")} == {
        str(p) for p in contested(group) if p.topic in subscribed
    }


def test_user_data_replaces_owned_partitions() -> None:
    a = Member(
        id="a", topics=("t",), owned=(T0, T1), generation=9, user_data=encode_claim((T2, T3), generation=1)
    )
    b = Member(id="b", topics=("t",), owned=(T2, T3), generation=0)
    assert assign("sticky", {"t": 4}, [a, b]) == {"a": [T2, T3], "b": [T0, T1]}


def test_corrupt_user_data_counts_as_no_claim() -> None:
    a = Member(id="a", topics=("t",), owned=(T2, T3), generation=9, user_data=b"\xff" * 7)
    b = Member(id="b", topics=("t",), owned=(T2, T3), generation=0)
    assert assign("sticky", {"t": 4}, [a, b]) == {"a": [T0, T1], "b": [T2, T3]}


def test_user_data_of_a_cooperative_member_has_only_the_generation() -> None:
    a = Member(id="a", topics=("t",), owned=(T0, T1), generation=1, user_data=encode_generation(5))
    b = Member(id="b", topics=("t",), owned=(T0, T1), generation=4)
    assert assign("cooperative-sticky", {"t": 2}, [a, b]) == {"a": [T0], "b": []}
    stale = Member(id="a", topics=("t",), owned=(T0, T1), generation=9, user_data=b"\0")
    assert assign("cooperative-sticky", {"t": 2}, [stale, b]) == {"a": [], "b": [T0]}


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_range_and_roundrobin_ignore_claims(name: str) -> None:
    odd = Member(id="a", topics=("t",), owned=(T3, T3, TopicPartition("gone", -1)), user_data=b"\xff")
    assert assign(name, {"t": 2}, [odd]) == {"a": [T0, T1]}
