"""The throttle of a run as people write it: a rate, `auto` or `none`."""

from __future__ import annotations

from restow.sizes import parse_rate

AUTO, NONE = "auto", "none"


def parse_throttle(text: str, flag: str = "--throttle") -> tuple[bool, int | None]:
    """Whether it is automatic, and if not, the rate; None for no throttle at all."""
    said = text.strip().lower()
    if said == AUTO:
        return True, None
    if said == NONE:
        return False, None
    return False, parse_rate(text, flag)
