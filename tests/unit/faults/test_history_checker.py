"""The history checker accepts good histories, and finds the fault in bad ones."""

from __future__ import annotations

import pytest

from tests.faults.history import Event, Kind, Op, check

GROUP = "g"
GOOD = [
    Event(1.0, "p", Op.WRITE, Kind.INVOKE, 1, 0, value="p:1"),
    Event(1.1, "p", Op.WRITE, Kind.INVOKE, 2, 0, value="p:2"),
    Event(1.2, "p", Op.WRITE, Kind.OK, 1, 0, 0, "p:1"),
    Event(1.3, "p", Op.WRITE, Kind.OK, 2, 0, 1, "p:2"),
    Event(1.4, "p", Op.WRITE, Kind.INVOKE, 3, 0, value="p:3"),
    Event(1.5, "p", Op.WRITE, Kind.UNKNOWN, 3, 0, value="p:3"),
    Event(2.0, "g/a", Op.RESUME, Kind.INVOKE, 1, 0),
    Event(2.1, "g/a", Op.RESUME, Kind.OK, 1, 0, 0),
    Event(2.2, "g/a", Op.READ, Kind.OK, 0, 0, 0, "p:1"),
    Event(2.3, "g/a", Op.COMMIT, Kind.INVOKE, 1, 0, 1),
    Event(2.4, "g/a", Op.COMMIT, Kind.OK, 1, 0, 1),
    Event(3.0, "g/b", Op.RESUME, Kind.INVOKE, 1, 0),
    Event(3.1, "g/b", Op.RESUME, Kind.OK, 1, 0, 1),
    Event(3.2, "g/b", Op.READ, Kind.OK, 0, 0, 1, "p:2"),
    Event(3.3, "g/b", Op.COMMIT, Kind.INVOKE, 1, 0, 2),
    Event(3.4, "g/b", Op.COMMIT, Kind.OK, 1, 0, 2),
    Event(4.0, "w", Op.WATERMARK, Kind.OK, 1, 0, 1),
    Event(4.1, "w", Op.WATERMARK, Kind.OK, 2, 0, 2),
]
FINAL = {0: [(0, "p:1"), (1, "p:2")]}


def without(number: int) -> list[Event]:
    return GOOD[:number] + GOOD[number + 1 :]


def test_good_history_has_no_faults() -> None:
    assert check(GOOD, FINAL, GROUP) == []


@pytest.mark.parametrize("offset", [2, 5])
def test_write_of_unknown_outcome_may_be_in_the_log(offset: int) -> None:
    assert check(GOOD, {0: [*FINAL[0], (offset, "p:3")]}, GROUP) == []


@pytest.mark.parametrize(
    ("final", "complaint"),
    [
        ({0: [(0, "p:1")]}, "lost: p:2 was acknowledged at 0/1"),
        ({}, "lost: p:1 was acknowledged at 0/0"),
        ({0: [(0, "p:1"), (2, "p:2")]}, "lost: p:2 was acknowledged at 0/1, but is elsewhere"),
        ({0: [*FINAL[0], (2, "p:2")]}, "duplicated: p:2 is in partition 0 at 1 and at 2"),
        ({0: [*FINAL[0], (2, "p:3"), (3, "p:1")]}, "reordered: p:1 at 0/3 comes behind p:3"),
        ({0: [*FINAL[0], (2, "q:1")]}, "invented: nobody wrote q:1, which is at 0/2"),
        ({0: FINAL[0], 1: [(0, "p:1")]}, "invented: nobody wrote p:1, which is at 1/0"),
        ({0: [(0, "p:3"), (1, "p:2")]}, "unstable: g/a read p:1 at 0/0, where p:3 is now"),
    ],
)
def test_bad_log_is_reported(final: dict[int, list[tuple[int, str]]], complaint: str) -> None:
    assert any(problem.startswith(complaint) for problem in check(GOOD, final, GROUP))


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (
            [Event(5.0, "g/b", Op.READ, Kind.OK, 0, 0, 1, "p:2")],
            "non-monotonic: g/b read 0/1 after 1",
        ),
        (
            [Event(5.0, "w", Op.WATERMARK, Kind.OK, 3, 0, 1)],
            "non-monotonic: the high watermark 0/1 came after 2 (w)",
        ),
        (
            [
                Event(5.0, "g/a", Op.COMMIT, Kind.INVOKE, 2, 0, 1),
                Event(5.1, "g/a", Op.COMMIT, Kind.OK, 2, 0, 1),
            ],
            "non-monotonic: g/a committed 1 of partition 0 after g/b had committed 2",
        ),
        (
            [Event(5.0, "g/a", Op.RESUME, Kind.INVOKE, 2, 0), Event(5.1, "g/a", Op.RESUME, Kind.OK, 2, 0, 1)],
            "forgotten: g/a found the group at 0/1, though g/b had committed 2",
        ),
    ],
)
def test_bad_history_is_reported(more: list[Event], complaint: str) -> None:
    assert check([*GOOD, *more], FINAL, GROUP) == [complaint]


def test_record_unread_by_the_group_is_reported() -> None:
    assert check(without(8), FINAL, GROUP) == ["passed over: nobody in g read p:1 at 0/0"]


def test_concurrent_commits_have_no_order() -> None:
    overlapping = [
        Event(3.35, "g/a", Op.COMMIT, Kind.INVOKE, 2, 0, 1),
        Event(5.1, "g/a", Op.COMMIT, Kind.OK, 2, 0, 1),
    ]
    assert check([*GOOD, *overlapping], FINAL, GROUP) == []


def test_overlapping_commit_may_be_the_last() -> None:
    late = [
        Event(3.35, "g/a", Op.COMMIT, Kind.INVOKE, 2, 0, 1),
        Event(5.1, "g/a", Op.COMMIT, Kind.OK, 2, 0, 1),
        Event(6.0, "g/a", Op.RESUME, Kind.INVOKE, 3, 0),
        Event(6.1, "g/a", Op.RESUME, Kind.OK, 3, 0, 1),
    ]
    assert check([*GOOD, *late], FINAL, GROUP) == []


def test_commit_of_unknown_outcome_is_not_required() -> None:
    unknown = [
        Event(5.0, "g/a", Op.COMMIT, Kind.INVOKE, 2, 0, 9),
        Event(5.1, "g/a", Op.COMMIT, Kind.UNKNOWN, 2, 0, 9),
        Event(6.0, "g/a", Op.RESUME, Kind.INVOKE, 2, 0),
        Event(6.1, "g/a", Op.RESUME, Kind.OK, 2, 0, 2),
    ]
    assert check([*GOOD, *unknown], FINAL, GROUP) == []


def test_restarted_member_may_read_an_offset_again() -> None:
    again = [
        Event(5.0, "g/a", Op.RESUME, Kind.INVOKE, 2, 0),
        Event(5.1, "g/a", Op.RESUME, Kind.OK, 2, 0, 2),
        Event(5.2, "g/a", Op.READ, Kind.OK, 0, 0, 0, "p:1"),
    ]
    assert check([*GOOD, *again], FINAL, GROUP) == []


UNANSWERED = [
    Event(5.0, "g/a", Op.COMMIT, Kind.INVOKE, 2, 0, 3),
    Event(5.1, "g/a", Op.COMMIT, Kind.UNKNOWN, 2, 0, 3),
    Event(6.0, "g/b", Op.RESUME, Kind.INVOKE, 2, 0),
    Event(6.1, "g/b", Op.RESUME, Kind.OK, 2, 0, 3),
]
"""The commit of 3 has no response, but the group was found there."""


def test_position_once_found_must_not_be_forgotten() -> None:
    read = [
        Event(4.5, "p", Op.WRITE, Kind.OK, 3, 0, 2, "p:3"),
        Event(4.6, "g/b", Op.READ, Kind.OK, 0, 0, 2, "p:3"),
    ]
    final = {0: [*FINAL[0], (2, "p:3")]}
    assert check([*GOOD, *read, *UNANSWERED], final, GROUP) == []
    back = [Event(7.0, "g/a", Op.RESUME, Kind.INVOKE, 3, 0), Event(7.1, "g/a", Op.RESUME, Kind.OK, 3, 0, 2)]
    assert check([*GOOD, *read, *UNANSWERED, *back], final, GROUP) == [
        "forgotten: g/a found the group at 0/2, though g/b had found it at 3"
    ]


def test_found_position_may_go_back_to_commit_without_response() -> None:
    """The client may have repeated it, after the one that was found."""
    late = [
        Event(5.2, "g/a", Op.COMMIT, Kind.INVOKE, 3, 0, 2),
        Event(7.0, "g/a", Op.RESUME, Kind.INVOKE, 4, 0),
        Event(7.1, "g/a", Op.RESUME, Kind.OK, 4, 0, 2),
    ]
    assert not any("forgotten" in problem for problem in check([*GOOD, *UNANSWERED, *late], FINAL, GROUP))


def test_record_unread_below_a_found_position_is_reported() -> None:
    final = {0: [*FINAL[0], (2, "p:3")]}
    assert check([*GOOD, *UNANSWERED], final, GROUP) == ["passed over: nobody in g read p:3 at 0/2"]
