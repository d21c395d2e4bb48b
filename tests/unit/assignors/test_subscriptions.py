"""The table of subscriptions: what is kept between calls does not show in it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors import subscriptions
from restow.assignors.subscriptions import subscription_table

if TYPE_CHECKING:
    import pytest


def _topics_of(given: list[tuple[str, ...]], partitions: dict[str, int]) -> list[set[str]]:
    """Return, from the table, what each of the given subscriptions wants."""
    topics, wanted, row_of = subscription_table(given, partitions)
    return [{topics[at] for at in np.flatnonzero(wanted[row]).tolist()} for row in row_of.tolist()]


def test_table_tells_what_each_member_wants_also_when_it_knows_some_subscriptions() -> None:
    choose = random.Random(1)
    names = [f"topic-{number}" for number in range(12)]
    for _ in range(60):
        partitions = {name: choose.choice((0, 1, 3)) for name in choose.sample(names, 9)}
        given = [tuple(choose.sample(names, choose.randrange(6))) for _ in range(choose.randrange(8))]
        expected = [{name for name in each if partitions.get(name, 0)} for each in given]
        assert _topics_of(given, partitions) == expected
        assert _topics_of(given, partitions) == expected
        read = subscription_table(given, partitions)[0]
        assert set(read) == set().union(*expected)


def test_table_has_one_row_for_equal_subscriptions() -> None:
    one, other = ("a", "b"), ("b", "a")
    _, wanted, row_of = subscription_table([one, other, ("a",), one], {"a": 1, "b": 1})
    assert wanted.shape == (2, 2)
    assert row_of.tolist() == [0, 0, 1, 0]


def test_table_forgets_subscriptions_when_they_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "_KEPT_AT_MOST", 100)
    partitions = {f"kept-{number}": 1 for number in range(5)}
    for number in range(30):
        mine = (f"kept-{number % 5}", f"kept-{(number + 1 + number // 5) % 5}")
        assert _topics_of([mine, tuple(partitions)], partitions) == [set(mine), set(partitions)]
    rows = subscriptions._rows_over(tuple(partitions))
    assert rows._kept_bytes <= 100
    assert rows._kept_bytes == sum(len(row) + 8 * len(topics) for topics, row in rows._kept.items())
