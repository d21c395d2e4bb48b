"""How many replicas may be under way: as given, or by their size."""

from __future__ import annotations

import pytest

from restow.model import Limits, Move, TopicPartition
from restow.plan.request.request import RequestedLimits, settled

MIB, GIB = 1 << 20, 1 << 30


def moves(*sizes: int) -> list[Move]:
    return [
        Move(partition=TopicPartition("t", number), before=(1, 2), after=(1, 3), size_bytes=size)
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("size", "moves_in"),
    [(50 * GIB, 20), (GIB, 20), (2 * GIB // 20, 20), (64 * MIB, 32), (32 * MIB, 64), (MIB, 200), (1, 200)],
)
def test_limit_is_higher_for_small_replicas(size: int, moves_in: int) -> None:
    found = settled(None, moves(*[size] * 30))
    assert found == Limits(moves_in=moves_in, moves_out=moves_in // 2)


def test_limit_depends_on_the_mean_size() -> None:
    assert settled(None, moves(*[MIB] * 10, 2000 * MIB)).moves_in == 20
    assert settled(None, moves(*[MIB] * 62, 66 * MIB)).moves_in == 200


@pytest.mark.parametrize("sizes", [[], [0, 0, 0]])
def test_limit_is_the_usual_when_sizes_are_unknown(sizes: list[int]) -> None:
    assert settled(None, moves(*sizes)) == Limits()


def test_limit_ignores_moves_without_copies() -> None:
    nothing = [
        Move(partition=TopicPartition("t", 100), before=(1, 2), after=(2, 1), size_bytes=MIB),
        Move(partition=TopicPartition("t", 101), before=(1, 2), after=(1,), size_bytes=MIB),
    ]
    assert settled(None, nothing) == Limits()
    assert settled(None, [*nothing * 50, *moves(GIB)]) == Limits()


def test_limit_counts_moves_between_log_dirs() -> None:
    within = Move(
        partition=TopicPartition("t", 0),
        before=(1, 2),
        after=(1, 2),
        size_bytes=64 * MIB,
        log_dirs=("/b", "any"),
        dirs_before={1: "/a"},
    )
    assert settled(None, [within]).moves_in == 32


def test_limit_that_was_given_is_kept() -> None:
    tiny = moves(*[MIB] * 5)
    assert settled(Limits(moves_in=3), tiny) == Limits(moves_in=3)
    assert settled(RequestedLimits(moves_in=3, fill=0.5), tiny) == Limits(moves_in=3, moves_out=100, fill=0.5)
    assert settled(RequestedLimits(moves_out=1, extra_copies=2), tiny) == Limits(
        moves_in=200, moves_out=1, extra_copies=2
    )
