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
    pages = max(1, ceil(len(rows) / size))
    number = min(max(number, 1), pages)
    return Paged(rows[(number - 1) * size : number * size], number, pages, len(rows))
