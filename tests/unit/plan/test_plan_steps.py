"""Moves in steps: never too many copies, never fewer than the smaller factor, and the right end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.model import Move, TopicPartition
from restow.plan.schedule.schedule import steps_of

replicas = st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True).map(tuple)


def move(before: tuple[int, ...], after: tuple[int, ...], **more: object) -> Move:
    return Move(partition=TopicPartition("t", 0), before=before, after=after, **more)  # type: ignore[arg-type]


def path(before: tuple[int, ...], after: tuple[int, ...], extra: int = 1) -> list[tuple[int, ...]]:
    return [step.after for step in steps_of(move(before, after), extra)]


def test_full_replacement_goes_one_by_one_and_changes_the_leader_last() -> None:
    assert path((1, 2, 3), (4, 5, 6)) == [(1, 2, 4), (1, 4, 5), (4, 5, 6)]


def test_more_extra_copies_mean_fewer_steps() -> None:
    assert path((1, 2, 3), (4, 5, 6), 2) == [(1, 4, 5), (4, 5, 6)]
    assert path((1, 2, 3), (4, 5, 6), 3) == [(4, 5, 6)]


def test_new_order_alone_is_one_step() -> None:
    assert path((1, 2, 3), (3, 2, 1)) == [(3, 2, 1)]


def test_move_to_the_same_replicas_is_one_step_that_changes_nothing() -> None:
    assert path((1, 2), (1, 2)) == [(1, 2)]


def test_larger_factor_is_no_extra_copy() -> None:
    assert path((1,), (1, 2, 3)) == [(1, 2, 3)]


def test_steps_are_refused_without_room_for_an_extra_copy() -> None:
    with pytest.raises(ValueError, match="at least one extra copy"):
        steps_of(move((1,), (2,)), 0)


def test_log_dirs_stay_with_their_brokers() -> None:
    steps = steps_of(move((1, 2), (3, 4), log_dirs=("/a", "/b")))
    assert [dict(zip(step.after, step.log_dirs, strict=True)) for step in steps] == [
        {1: "any", 3: "/a"},
        {3: "/a", 4: "/b"},
    ]


@given(replicas, replicas, st.integers(1, 3))
def test_every_intermediate_state_is_safe(
    before: tuple[int, ...], after: tuple[int, ...], extra: int
) -> None:
    now = before
    for step in steps_of(move(before, after), extra):
        assert step.before == now
        at_once = set(step.before) | set(step.after)
        assert len(at_once) <= max(len(before), len(after)) + extra
        assert len(step.after) == len(set(step.after)) >= min(len(before), len(after))
        assert set(step.after) <= set(before) | set(after)
        if step.after != after:
            assert step.after[0] == before[0]
        now = step.after
    assert now == after
