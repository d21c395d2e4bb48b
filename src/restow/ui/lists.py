"""Long lists, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Paged(Generic[T]):
    """The rows of one page, which page it is, and how many there are."""

    rows: Sequence[T]
    number: int
    pages: int
    total: int


def paged(rows: Sequence[T], number: int, size: int) -> Paged[T]:
    """Return a page; the nearest one if there is none of that number."""
    number, pages = page_of(len(rows), number, size)
    return Paged(rows[(number - 1) * size : number * size], number, pages, len(rows))


def page_of(total: int, number: int, size: int) -> tuple[int, int]:
    """Return the number of the nearest page, and how many there are."""
    pages = max(1, ceil(total / size))
    return min(max(number, 1), pages), pages


def thinned(points: Sequence[T], most: int) -> Sequence[T]:
    """Return at most so many points, with the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]
