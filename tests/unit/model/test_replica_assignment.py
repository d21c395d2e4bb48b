"""The algebra of reassignments: adding, removing, and cancelling."""

from __future__ import annotations

import pickle
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from restow.model import ReplicaAssignment, Step, TopicPartition

BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True).map(tuple)


@st.composite
def moves(draw: st.DrawFn) -> ReplicaAssignment:
    """Draw the assignment after any number of targets."""
    assignment = ReplicaAssignment(draw(BROKERS))
    for target in draw(st.lists(BROKERS, max_size=4)):
        assignment = assignment.reassign_to(target)
    return assignment


def test_reassign_follows_the_worked_example() -> None:
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4, 5, 6))
    assert moving == ReplicaAssignment((3, 4, 5, 6, 1, 2), adding=(4, 5, 6), removing=(1, 2))
    assert moving.target == (3, 4, 5, 6)
    assert set(moving.origin) == {1, 2, 3}


def test_cancel_restores_the_replicas_but_not_their_order() -> None:
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4))
    assert moving.replicas == (3, 4, 1, 2)
    assert moving.cancel() == ReplicaAssignment((3, 1, 2))


def test_new_order_is_no_move() -> None:
    assert ReplicaAssignment((0, 1, 2)).reassign_to((2, 1, 0)) == ReplicaAssignment((2, 1, 0))


@given(moves(), BROKERS)
def test_latest_target_counts_and_the_origin_stays(
    before: ReplicaAssignment, target: tuple[int, ...]
) -> None:
    after = before.reassign_to(target)
    assert after.target == target
    assert set(after.origin) == set(before.origin)
    if not before.is_moving:
        assert set(after.origin) == set(before.replicas)
    assert after.is_moving == (set(target) != set(after.origin))
    assert after.replicas[: len(target)] == target
    assert set(after.adding) == set(target) - set(after.origin)
    assert set(after.removing) == set(after.origin) - set(target)
    assert len(set(after.replicas)) == len(after.replicas)


@given(moves())
def test_cancelled_move_is_at_rest_at_its_origin(before: ReplicaAssignment) -> None:
    after = before.cancel()
    assert not after.is_moving
    assert after.replicas == before.origin
    assert after.cancel() == after


@given(moves(), BROKERS)
def test_same_target_again_changes_nothing(before: ReplicaAssignment, target: tuple[int, ...]) -> None:
    once = before.reassign_to(target)
    assert once.reassign_to(target) == once


def test_step_stays_the_same_once_it_was_asked_for_what_it_adds() -> None:
    """The answer is kept in the step, and not in what is compared, copied or sent to other processes."""
    name = TopicPartition("t", 0)
    asked = Step(partition=name, before=(1, 2), after=(2, 3))
    assert asked.adding == (3,)
    new = Step(partition=name, before=(1, 2), after=(2, 3))
    assert asked == new
    assert hash(asked) == hash(new)
    assert pickle.loads(pickle.dumps(asked)).adding == (3,)  # noqa: S301
    assert replace(asked, after=(4, 5)).adding == (4, 5)
