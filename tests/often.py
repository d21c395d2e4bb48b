"""Select the cases that every run tests; the others run with `make test-full`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

IS_FULL = "RESTOW_CASES" in os.environ
"""Whether this is `make test-full`, which sets it."""


def often(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return the values of a parameter, with those that are not kept marked `full`."""
    listed = list(values)
    if strange := [value for value in kept if value not in listed]:
        raise ValueError(f"{strange} are not among {listed}")
    return [
        value if value in kept else pytest.param(*_several(value), marks=pytest.mark.full) for value in listed
    ]


def of_many(cases: int, *, often: int) -> int:
    """Return how many random cases to run: a few where one is slow, all of them in `make test-full`."""
    return cases if IS_FULL else often


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
