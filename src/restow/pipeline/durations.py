"""How long things take, as people write it: `500ms`, `30s`, `5m`, `1h`."""

from __future__ import annotations

import re

from restow.errors import InvalidInput

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WRITTEN = re.compile(r"\s*(?P<number>[0-9]{1,9}(\.[0-9]{1,3})?)\s*(?P<unit>ms|s|m|h|d)\s*")


def milliseconds(text: str, where: str) -> int:
    """More than none. `where` is how a complaint calls the place it was written in."""
    match = _WRITTEN.fullmatch(text)
    found = round(float(match["number"]) * _UNITS[match["unit"]]) if match else 0
    if found < 1:
        raise InvalidInput(f"{where}: {text!r} is not a duration: write it like 500ms, 30s, 5m or 1h")
    return found
