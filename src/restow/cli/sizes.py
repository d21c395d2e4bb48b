"""Bytes as people write and read them."""

from __future__ import annotations

_STEPS = ("B", "kB", "MB", "GB", "TB", "PB")


def human_bytes(number: float) -> str:
    """`1.5 GB`: three digits, steps of a thousand."""
    value = float(number)
    for unit in _STEPS:
        if abs(value) < 999.5 or unit == _STEPS[-1]:
            digits = 0 if unit == "B" or abs(value) >= 99.95 else 1
            return f"{value:,.{digits}f} {unit}"
        value /= 1000
    raise AssertionError("the last step returns")
