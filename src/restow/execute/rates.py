"""Rates as people write them: `50MB/s`, `800kB`, `1.5MiB/s`, `auto`, `none`, or bytes per second."""

from __future__ import annotations

import re

from restow.errors import InvalidInput

AUTO, NONE = "auto", "none"
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?i?)[bB]?(?:/s|ps)?")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_MOST = 2**63 - 1


def parse_rate(text: str, flag: str = "--throttle") -> int:
    """Bytes per second."""
    found = _RATE.fullmatch(text.strip())
    if found is not None and found[2] != "i":
        unit = found[2]
        factor = 1024 ** "kMGT".index(unit[0]) * 1024 if unit.endswith("i") else _UNITS[unit]
        rate = round(float(found[1]) * factor)
        if 0 < rate <= _MOST:
            return rate
    raise InvalidInput(f"{flag}: {text!r} is not a rate above zero; write it like 50MB/s or 52428800")


def parse_throttle(text: str) -> tuple[bool, int | None]:
    """Whether it is automatic, and if not, the rate; None for no throttle at all."""
    said = text.strip().lower()
    if said == AUTO:
        return True, None
    if said == NONE:
        return False, None
    return False, parse_rate(text)
