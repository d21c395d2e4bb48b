"""Random numbers: the system's, and seeded ones that repeat."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from restow.runtime.chance import SeededChance, SystemChance

if TYPE_CHECKING:
    from restow.runtime.chance import Chance


def draws(chance: Chance) -> list[object]:
    return [
        value for _ in range(50) for value in (chance.randrange(1000), chance.randbytes(8), chance.uuid())
    ]


@pytest.mark.parametrize("chance", [SystemChance(), SeededChance(5)], ids=["system", "seeded"])
def test_draws_have_the_right_range_and_size(chance: Chance) -> None:
    assert {chance.randrange(3) for _ in range(200)} == {0, 1, 2}
    assert [len(chance.randbytes(count)) for count in (0, 1, 17)] == [0, 1, 17]
    ids = {chance.uuid() for _ in range(200)}
    assert len(ids) == 200
    assert {each.version for each in ids} == {4}


def test_seed_draws_what_the_library_draws() -> None:
    chance, library = SeededChance("a seed"), random.Random("a seed")
    limits = [1, 2, 3, 5, 8, 1000, 1024, 1025, 2**40] * 20
    assert [chance.randrange(each) for each in limits] == [library.randrange(each) for each in limits]
    assert chance.randbytes(8) == library.randbytes(8)
    with pytest.raises(ValueError, match="below 0"):
        chance.randrange(0)


def test_seed_repeats_the_same_numbers() -> None:
    assert draws(SeededChance(1)) == draws(SeededChance(1)) != draws(SeededChance(2))
    assert draws(SystemChance()) != draws(SystemChance())
