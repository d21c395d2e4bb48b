"""Sizes and rates as people write them: `50MB`, `1.5GiB`, `50MB/s`.

All parsing and formatting of them is here. A number without a unit is refused: `5` may mean bytes or
megabytes, and the difference is a move that ends today or next year.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIXES = ("", "k", "M", "G", "T", "P")
_WRITTEN = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>[A-Za-z]*?)(?P<per_s>/s|ps)?", re.ASCII)
_MOST = 2**63 - 1
# A bare number from here on is hardly meant in megabytes.
_MANY = 100_000


def _factors() -> dict[str, int]:
    """Return the units by name: powers of a thousand, and with an `i` powers of 1024."""
    found = {"B": 1}
    for power, prefix in enumerate(_PREFIXES[1:], 1):
        for letter in {prefix, prefix.upper()}:
            found |= {letter: 1000**power, f"{letter}B": 1000**power, f"{letter}iB": 1024**power}
    return found


_FACTORS = _factors()


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 broker`, `2 brokers`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun}"


def some(items: Iterable[object], most: int = 5, between: str = ", ") -> str:
    """Return the first few items, and how many more there are: `a, b and 3 more`."""
    listed = list(items)
    more = f"{between.rstrip(', ')} and {len(listed) - most:,} more" if len(listed) > most else ""
    return between.join(map(str, listed[:most])) + more


def human_bytes(number: float | None) -> str:
    """Return a size like `1.5 GB`: three digits, steps of a thousand; `?` for a size that is not known."""
    return "?" if number is None else scaled(number, "B")


def human_rate(number: float) -> str:
    """Return a rate like `1.5 GB/s`."""
    return scaled(number, "B/s")


def human_duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits, like `3 min`; `forever` for one without an end."""
    if seconds == inf:
        return "forever"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def scaled(number: float, unit: str) -> str:
    """Return a number with three digits and a fitting prefix."""
    value = float(number)
    for prefix in _PREFIXES:
        if abs(value) < 999.5 or prefix == _PREFIXES[-1]:
            digits = 0 if abs(value) >= 99.95 or (not prefix and (unit == "B" or value.is_integer())) else 1
            return f"{value:,.{digits}f} {prefix}{unit}".rstrip()
        value /= 1000
    raise AssertionError("the last prefix returns")


def parse_size(text: str, flag: str) -> int:
    """Return the bytes of `50MB` or `1.5GiB`; 0 needs no unit."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is not None and found["per_s"]:
        raise InvalidInput(f"{flag}: {text!r} is a rate; a size is wanted here, like 50MB")
    size = None if found is None else _bytes(found, flag, "")
    if size is None or size > _MOST:
        raise InvalidInput(f"{flag}: {text!r} is not a size; write it like 50MB, 1.5GiB or 0{_near(found)}")
    return size


def parse_rate(text: str, flag: str = "--throttle") -> int:
    """Return the bytes per second of `50MB/s`; the `/s` may be omitted."""
    found = _WRITTEN.fullmatch(text.strip())
    rate = None if found is None else _bytes(found, flag, "/s")
    if not rate or rate > _MOST:
        raise InvalidInput(
            f"{flag}: {text!r} is not a rate above zero; write it like 50MB/s or 1.5MiB/s{_near(found)}"
        )
    return rate


def _bytes(found: re.Match[str], flag: str, per_s: str) -> int | None:
    number, unit = found["number"], found["unit"]
    if not unit and float(number) > 0:
        raise InvalidInput(f"{flag}: {found[0]!r} has no unit: {_meanings(number, per_s)}")
    factor = _FACTORS.get(unit or "B")
    return None if factor is None else round(float(number) * factor)


def _meanings(number: str, per_s: str) -> str:
    """Say what a number without a unit may mean."""
    per_second = " per second" if per_s else ""
    said = f"{number} bytes{per_second}? write {number}B{per_s}"
    if float(number) >= _MANY:
        return f"{said} ({scaled(float(number), f'B{per_s}')})"
    return f"{said}; {number} megabytes{per_second}? write {number}MB{per_s}"


def _near(found: re.Match[str] | None) -> str:
    """Name the unit that differs only by case; a lower-case b usually means bits."""
    if found is None:
        return ""
    units = {name.lower(): name for name in _FACTORS}
    meant = units.get(found["unit"].lower())
    if meant is None or meant in (found["unit"], "B"):
        return ""
    bits = "a small b is for bits; " if found["unit"].endswith("b") else ""
    return f" ({bits}is {meant} meant?)"


_TIMES = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"\s*(?P<number>[0-9]{1,9}(\.[0-9]{1,3})?)\s*(?P<unit>ms|s|m|h|d)\s*")


def milliseconds(text: str, where: str) -> int:
    """Return a duration above zero; `where` names its place in errors."""
    match = _DURATION.fullmatch(text)
    found = round(float(match["number"]) * _TIMES[match["unit"]]) if match else 0
    if found < 1:
        raise InvalidInput(f"{where}: {text!r} is not a duration: write it like 500ms, 30s, 5m or 1h")
    return found
