"""Strings that are not shown."""

from __future__ import annotations

from typing import Any

HIDDEN = "********"


class Secret(str):
    """A string that is not shown: not by repr, str, format or in a log.

    Operations that need the value itself (`encode`, `join`, comparison) get it.
    """

    __slots__ = ()

    def reveal(self) -> str:
        """Return the plain string, to send it."""
        return "".join(self)

    def __repr__(self) -> str:
        return f"'{HIDDEN}'"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not to be pickled")
