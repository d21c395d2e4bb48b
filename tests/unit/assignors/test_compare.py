"""Changes from one assignment to the next, and Kafka's balance score."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from restow.assignors import AssignmentComparison, TopicPartition, compare
from restow.assignors.compare import balance_score
from tests.unit.assignors.small_groups import same_cases

T0, T1, T2, T3 = (TopicPartition("t", p) for p in range(4))


@same_cases
@given(counts=st.lists(st.integers(0, 1000), max_size=20))
def test_balance_score_is_the_sum_over_all_pairs(counts: list[int]) -> None:
    assert balance_score(counts) == sum(abs(a - b) for a, b in combinations(counts, 2))
    assert balance_score(iter(counts)) == balance_score(counts)


def test_compare_counts_moved_and_revoked_partitions() -> None:
    before = {"a": [T0, T1, T2], "gone": [T3]}
    after = {"a": [T0], "new": [T1, T3]}
    assert compare(before, after) == AssignmentComparison(
        balance_score=1,
        balance_score_before=2,
        moved=2,  # T1 and T3 have another owner
        revoked=2,  # T1 and T2 were taken from a; T3's owner left by itself
        counts={"a": 1, "new": 2},
    )


def test_compare_of_empty_assignments_is_empty() -> None:
    empty = compare({}, {})
    assert (empty.balance_score, empty.balance_score_before, empty.moved, empty.revoked) == (0, 0, 0, 0)
    first = compare({}, {"a": [T0], "b": []})
    assert (first.balance_score, first.moved, first.revoked) == (1, 0, 0)
    last = compare({"a": [T0]}, {})
    assert (last.moved, last.revoked, last.counts) == (0, 0, {})


@st.composite
def assignments(draw: st.DrawFn) -> dict[str, list[TopicPartition]]:
    owners = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=8, max_size=8))
    members = draw(st.sets(st.sampled_from(["a", "b", "c"])))
    return {
        m: [TopicPartition("t", p) for p, owner in enumerate(owners) if owner == m] for m in sorted(members)
    }


@same_cases
@given(before=assignments(), after=assignments())
def test_compare_equals_counting_partition_by_partition(
    before: dict[str, list[TopicPartition]], after: dict[str, list[TopicPartition]]
) -> None:
    moved = revoked = 0
    for number in range(8):
        partition = TopicPartition("t", number)
        (old,) = [m for m, mine in before.items() if partition in mine] or [None]
        (new,) = [m for m, mine in after.items() if partition in mine] or [None]
        moved += old is not None and new is not None and old != new
        revoked += old is not None and old in after and old != new
    found = compare(before, after)
    assert (found.moved, found.revoked) == (moved, revoked)
    assert found.counts == {m: len(mine) for m, mine in after.items()}
    assert found.balance_score == sum(abs(len(after[a]) - len(after[b])) for a, b in combinations(after, 2))
