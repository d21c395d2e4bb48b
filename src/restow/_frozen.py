"""The decorator of values: immutable, compact, and made with named fields only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a dataclass whose fields cannot be set again, have slots, and are given by name.

    Type checkers, `replace`, `fields` and `asdict` treat it as any other dataclass.
    """
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
